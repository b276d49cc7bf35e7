/* Units of measure and what they are worth. */
#ifndef UNITS_H
#define UNITS_H

/* 0, -1 if a unit is not known, -2 if the two measure different things. */
int units_convert(double value, const char *from, const char *to, double *ret);

#endif
