#include "stats.h"

#include <math.h>

void stats_add(struct stats *s, double x)
{
	double d = x - s->mean;

	if (!s->n || x < s->min)
		s->min = x;
	if (!s->n || x > s->max)
		s->max = x;
	s->n++;
	s->mean += d / (double)s->n;
	s->m2 += d * (x - s->mean);
}

double stats_deviation(const struct stats *s)
{
	return s->n < 2 ? 0 : sqrt(s->m2 / (double)(s->n - 1));
}
