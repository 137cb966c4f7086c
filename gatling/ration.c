/* ration.c - see ration.h. */
#include "gatling/ration.h"

static const double TURNS_NS = 50e6; /* that are remembered */
/* Whoever is taken asks for more a moment later, so the rate cannot grow at once: in RATE_S, e^GAIN times. Whatever the
 * turns take, RATE_LEAST get in. What was not taken is remembered for CREDIT_S. */
static const double RATE_S = 2, GAIN = 0.8, GAIN_LONG = 1.2, RATE_LEAST = 200, CREDIT_S = 0.01, CREDIT_LEAST = 8;

void turns_note(struct turns *t, int64_t began_ns, int64_t took_ns) {
	const double passed_ns = (double)(began_ns - t->began_ns);
	const double kept = passed_ns < TURNS_NS ? 1 - passed_ns / TURNS_NS : 0;
	t->began_ns = began_ns;
	t->count = t->count * kept + 1;
	t->ns = t->ns * kept + (double)took_ns;
}

double turns_left(const struct turns *t) {
	const double left = t->count > 0 ? 1 - t->ns / t->count / (RATION_TURN_MS * 1e6) : 0;
	return left > -1 ? left : -1;
}

void ration_begin(struct ration *r, double rate, int64_t now_ns) {
	*r = (struct ration){.rate = rate, .at_ns = now_ns};
}

static double at_least(double least, double value) { return value < least ? least : value; }

unsigned ration_give(struct ration *r, double left, unsigned taken, int64_t now_ns) {
	const double passed_s = (double)(now_ns - r->at_ns) / 1e9;
	r->at_ns = now_ns;
	if (passed_s > 0) r->rate += (taken / passed_s - r->rate) * (passed_s < RATE_S ? passed_s / RATE_S : 1);
	r->rate = at_least(RATE_LEAST, r->rate);
	const double allowed = at_least(RATE_LEAST, r->rate * (1 + (left < 0 ? GAIN_LONG : GAIN) * left)),
				 most = at_least(CREDIT_LEAST, allowed * CREDIT_S);
	r->credit += allowed * passed_s;
	if (r->credit > most) r->credit = most;
	const unsigned given = (unsigned)r->credit;
	r->credit -= given;
	return given;
}
