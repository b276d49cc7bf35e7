/* Count, extremes, mean and deviation of a stream of numbers, in constant space. */
#ifndef STATS_H
#define STATS_H

struct stats {
	unsigned long n;
	double min, max, mean;
	double m2; /* sum of squared distances from the mean so far (Welford) */
};

void stats_add(struct stats *s, double x); /* s starts zeroed */
double stats_deviation(const struct stats *s); /* of the sample; 0 for fewer than two numbers */

#endif
