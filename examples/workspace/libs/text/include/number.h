/* Numbers as people write them. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stddef.h>

/* 0 if all of text is a finite number, else -1. */
int number_parse(const char *text, double *ret);

/* At most digits behind the point, without trailing zeros. */
void number_format(char *to, size_t size, double value, int digits);

#endif
