/* bisect.c - see bisect.h. */
#include "bench/httpbench/statistics/bisect.h"

struct bisect bisect_begin(double rate, double precision) {
	return (struct bisect){.high = rate, .precision = precision};
}

double bisect_rate(const struct bisect *s) {
	if (s->high <= 1 || bisect_undecided(s)) return 0;
	if (!s->bounded) return s->high;
	return s->high - s->low > s->precision * s->high ? (s->low + s->high) / 2 : 0;
}

void bisect_take(struct bisect *s, enum bisect_result result) {
	const double rate = bisect_rate(s);
	s->unknown = result == BISECT_UNKNOWN ? s->unknown + 1 : 0;
	if (result == BISECT_MET) {
		s->low = rate;
		if (!s->bounded) s->high *= 2;
	} else if (result == BISECT_MISSED) {
		s->high = rate;
		s->bounded = true;
	}
}
