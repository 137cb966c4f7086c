/* ration.h - how many new connections a server takes when more come than it can serve: as many as keep the time that
 * the requests of those that it has wait at RATION_WAIT_MS. A proportional-integral controller: the rate follows what
 * was taken in the last seconds, and the error, how far the wait is from that, sets how much more or less is taken now.
 */
#ifndef GATLING_RATION_H
#define GATLING_RATION_H

#include <stdbool.h>
#include <stdint.h>

/* A page with ten files, one after the other, then takes less than a tenth of a second. */
enum { RATION_WAIT_MS = 4 };

/* While its clients ask for much each, a socket does not listen for up to so long, see ration_enough(). */
enum { RATION_PAUSE_MS = 24 };

/* With more than this part of it left, see waits_left(), requests hardly wait. */
#define RATION_IDLE_PART 0.5

/* How long requests have waited of late until they were read: a mean over time. All zero at first. */
struct waits {
	int64_t at_ns; /* of the last one that was noted */
	double count, ms;
};

/* Notes a request that has waited for so long. */
void waits_note(struct waits *waits, int64_t now_ns, int64_t waited_ms);

/* Returns the mean, in milliseconds; 0 if no request was noted of late. */
double waits_mean(const struct waits *waits, int64_t now_ns);

/* Returns how much less than RATION_WAIT_MS requests wait, as a part of it: 1, not at all; 0, as long; -1, twice as
 * long; -4, five times as long or longer. */
double waits_left(const struct waits *waits, int64_t now_ns);

/* How much is done in a second: a mean of the last two. All zero at first. */
struct pace {
	double per_s;
	int64_t at_ns; /* of the last time that it was noted */
};

/* Notes that so much was done. */
void pace_note(struct pace *pace, unsigned count, int64_t now_ns);

/* All zero at first. */
struct ration {
	double rate;       /* taken in a second, of late */
	double allowed;    /* in a second, as ration_left() found it last */
	double credit;     /* that may be taken */
	int64_t at_ns;     /* of rate and credit */
	int64_t waited_ns; /* the last time that requests did more than hardly wait */
};

/* Notes that so many were taken: also before there is a ration, for the rate that it begins with. */
void ration_take(struct ration *ration, unsigned count, int64_t now_ns);

/* Begins. What was taken before does not count against the credit. */
void ration_begin(struct ration *ration, int64_t now_ns);

/* Returns how many may be taken now, as the waits leave that part. */
double ration_left(struct ration *ration, double left, int64_t now_ns);

/* Returns whether requests have hardly waited for RATION_IDLE_S: then the ration is far too small, as those who come
 * now ask for less than those before. */
enum { RATION_IDLE_S = 2 };
bool ration_idle(const struct ration *ration);

/* Returns how many must be left for a socket to listen again: if it is as many as came the last time, hardly any of
 * them has to be reset. But those who come together make others wait, so there are no more than are allowed in
 * RATION_WAIT_MS; or, if that is more, than requests are answered in it, `requests` in a second, and connections
 * allowed in RATION_PAUSE_MS. */
double ration_enough(const struct ration *ration, unsigned came, double requests);

#endif
