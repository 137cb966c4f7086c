/* admission.c - see admission.h. */
#include "gatling/load/admission.h"

static const double WAITS_NS = 50e6;      /* over which waits are averaged */
static const double FORGOTTEN_NS = 200e6; /* after which, without another wait, the mean is 0 */
/* RATE_S: seconds over which the rate is averaged. The gains: with larger ones the rate oscillates, since clients that
 * were accepted together come again together. RATE_LEAST: connections accepted in a second, however long requests wait.
 * CREDIT_S: connections that were allowed but did not come are credited for so many seconds, so that a burst within the
 * credit is served. */
static const double RATE_S = 2, GAIN = 0.5, GAIN_LONG = 1.5, RATE_LEAST = 10, CREDIT_S = 1;
static const double LEFT_LEAST = -4;
/* A longer wait counts as this, so that no single wait decides the mean. */
enum { WAITED_MOST_MS = 100 };

static double at_least(double least, double value) { return value < least ? least : value; }

void waits_note(struct waits *w, int64_t now_ns, int64_t waited_ms) {
	const double passed_ns = (double)(now_ns - w->at_ns);
	const double kept = passed_ns < WAITS_NS ? 1 - passed_ns / WAITS_NS : 0;
	w->at_ns = now_ns;
	w->count = w->count * kept + 1;
	w->ms = w->ms * kept + (double)(waited_ms < WAITED_MOST_MS ? waited_ms : WAITED_MOST_MS);
}

double waits_mean(const struct waits *w, int64_t now_ns) {
	return w->count > 0 && (double)(now_ns - w->at_ns) < FORGOTTEN_NS ? w->ms / w->count : 0;
}

double waits_left(const struct waits *w, int64_t now_ns) {
	return at_least(LEFT_LEAST, 1 - waits_mean(w, now_ns) / ADMISSION_WAIT_MS);
}

/* Returns the rate, a mean of the last RATE_S, after passed_s without events. */
static double faded(double rate, double passed_s) { return passed_s < RATE_S ? rate * (1 - passed_s / RATE_S) : 0; }

void pace_note(struct pace *p, unsigned count, int64_t now_ns) {
	p->per_s = faded(p->per_s, (double)(now_ns - p->at_ns) / 1e9) + count / RATE_S;
	p->at_ns = now_ns;
}

/* Brings the rate up to date. Returns the seconds since it last was. */
static double pass_time(struct admission *r, int64_t now_ns) {
	const double passed_s = (double)(now_ns - r->at_ns) / 1e9;
	r->at_ns = now_ns;
	r->rate = faded(r->rate, passed_s);
	return passed_s;
}

void admission_take(struct admission *r, unsigned count, int64_t now_ns) {
	(void)pass_time(r, now_ns);
	r->rate += count / RATE_S;
	r->credit -= count;
}

void admission_begin(struct admission *r, int64_t now_ns) {
	r->credit = 0;
	r->waited_ns = now_ns;
}

/* Returns for how many seconds requests have hardly waited. */
static double idle_s(const struct admission *r) { return (double)(r->at_ns - r->waited_ns) / 1e9; }

bool admission_idle(const struct admission *r) { return idle_s(r) >= ADMISSION_IDLE_S; }

/* Returns by what fraction the allowed rate exceeds the actual one; negative: falls below it. The fraction grows with
 * the time for which requests have hardly waited. */
static double more(const struct admission *r, double left) {
	return left * (left < 0 ? GAIN_LONG : GAIN * (1 + idle_s(r)));
}

double admission_left(struct admission *r, double left, int64_t now_ns) {
	const double passed_s = pass_time(r, now_ns);
	if (left < ADMISSION_IDLE_PART) r->waited_ns = now_ns;
	const double rate = at_least(RATE_LEAST, r->rate);
	r->allowed = at_least(RATE_LEAST, rate * (1 + more(r, left)));
	r->credit += r->allowed * passed_s;
	const double most = r->allowed * CREDIT_S;
	if (r->credit > most) r->credit = most;
	return r->credit;
}

double admission_enough(const struct admission *r, unsigned came, double requests) {
	const double soon = r->allowed * ADMISSION_WAIT_MS / 1e3, later = r->allowed * ADMISSION_PAUSE_MS / 1e3;
	const double answered = requests * ADMISSION_WAIT_MS / 1e3;
	const double most = at_least(soon, later < answered ? later : answered);
	return at_least(1, came < most ? came : most);
}
