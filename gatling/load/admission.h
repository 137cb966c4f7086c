/* admission.h - how many new connections a server accepts under overload: so many that the requests on its connections
 * wait about ADMISSION_WAIT_MS. This is a proportional-integral controller. The rate follows the connections accepted
 * in the last seconds. The error, the distance of the wait from ADMISSION_WAIT_MS, sets how much more or less than that
 * is allowed now. */
#ifndef GATLING_LOAD_ADMISSION_H
#define GATLING_LOAD_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

/* The wait to aim at: a page with ten files, requested one after the other, then takes less than a tenth of a
 * second. */
enum { ADMISSION_WAIT_MS = 4 };

/* How long a socket may stop listening while each of its clients makes many requests, see admission_enough(). */
enum { ADMISSION_PAUSE_MS = 24 };

/* Requests hardly wait if waits_left() is more than this. */
#define ADMISSION_IDLE_PART 0.5

/* How long requests waited until they were read: a mean over time. All zero at first. */
struct waits {
	int64_t at_ns; /* when the last wait was noted */
	double count, ms;
};

/* Notes a request that has waited for waited_ms. */
void waits_note(struct waits *waits, int64_t now_ns, int64_t waited_ms);

/* Returns the mean in milliseconds; 0 if no wait was noted recently. */
double waits_mean(const struct waits *waits, int64_t now_ns);

/* Returns by what fraction of ADMISSION_WAIT_MS the waits are shorter than that: 1 if there are none, 0 if they are as
 * long, -1 if they are twice as long, and -4 if they are five times as long or longer. */
double waits_left(const struct waits *waits, int64_t now_ns);

/* How many events there are in a second: a mean of the last two. All zero at first. */
struct pace {
	double per_s;
	int64_t at_ns; /* when events were last noted */
};

/* Notes count events. */
void pace_note(struct pace *pace, unsigned count, int64_t now_ns);

/* All zero at first. */
struct admission {
	double rate;       /* connections accepted in a second: a mean of the last two */
	double allowed;    /* connections in a second, as of the last admission_left() */
	double credit;     /* connections that may be accepted */
	int64_t at_ns;     /* when rate and credit were last brought up to date */
	int64_t waited_ns; /* when requests last did more than hardly wait */
};

/* Notes that count connections were accepted. Called without overload, too, so that admission begins with the right
 * rate. */
void admission_take(struct admission *admission, unsigned count, int64_t now_ns);

/* Begins to admit. Connections accepted before do not count against its credit. */
void admission_begin(struct admission *admission, int64_t now_ns);

/* Returns how many connections may be accepted now. left: of waits_left(). */
double admission_left(struct admission *admission, double left, int64_t now_ns);

/* Returns whether requests have hardly waited for ADMISSION_IDLE_S seconds. Then far too few are admitted, since
 * clients now cause less work than those before. */
enum { ADMISSION_IDLE_S = 2 };
bool admission_idle(const struct admission *admission);

/* Returns how large the credit has to be for a socket to listen again. With `came`, as many as came the last time,
 * hardly any connection has to be reset. But connections that come together make others wait. So the result is at most
 * the connections allowed in ADMISSION_WAIT_MS or, if that is more, the smaller of two numbers: the connections allowed
 * in ADMISSION_PAUSE_MS, and the requests answered in ADMISSION_WAIT_MS. requests: how many are answered in a second.
 */
double admission_enough(const struct admission *admission, unsigned came, double requests);

#endif
