/* ration.c - see ration.h. */
#include "gatling/ration.h"

static const double TURNS_NS = 50e6; /* that are remembered */
/* Whoever is taken asks for more a moment later, so the rate begins with a part, and cannot grow at once: in RATE_S,
 * e^GAIN times. With larger gains it swings, as those who were taken together come again together. Whatever the turns
 * take, RATE_LEAST get in. What was not taken is remembered for CREDIT_S, so that a burst within the ration is served.
 */
static const double RATE_S = 2, GAIN = 0.8, GAIN_LONG = 0.3, RATE_LEAST = 200, CREDIT_S = 1;
static const double BEGIN_PART = 0.4, LEFT_LEAST = -4;

void turns_note(struct turns *t, int64_t began_ns, int64_t took_ns) {
	const double passed_ns = (double)(began_ns - t->began_ns);
	const double kept = passed_ns < TURNS_NS ? 1 - passed_ns / TURNS_NS : 0;
	t->began_ns = began_ns;
	t->count = t->count * kept + 1;
	t->ns = t->ns * kept + (double)took_ns;
}

double turns_left(const struct turns *t) {
	const double left = t->count > 0 ? 1 - t->ns / t->count / (RATION_TURN_MS * 1e6) : 0;
	return left > LEFT_LEAST ? left : LEFT_LEAST;
}

void ration_begin(struct ration *r, double rate, int64_t now_ns) {
	*r = (struct ration){.rate = BEGIN_PART * rate, .at_ns = now_ns};
}

static double at_least(double least, double value) { return value < least ? least : value; }

double ration_left(struct ration *r, double left, int64_t now_ns) {
	const double passed_s = (double)(now_ns - r->at_ns) / 1e9;
	if (passed_s <= 0) return r->credit;
	r->at_ns = now_ns;
	r->rate += (r->taken / passed_s - r->rate) * (passed_s < RATE_S ? passed_s / RATE_S : 1);
	r->rate = at_least(RATE_LEAST, r->rate);
	r->taken = 0;
	const double allowed = at_least(RATE_LEAST, r->rate * (1 + (left < 0 ? GAIN_LONG : GAIN) * left)),
				 most = allowed * CREDIT_S;
	r->credit += allowed * passed_s;
	if (r->credit > most) r->credit = most;
	return r->credit;
}

void ration_take(struct ration *r, unsigned count) {
	r->taken += count;
	r->credit -= count;
}
