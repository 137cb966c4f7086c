/* ration.h - how many new connections a server takes when more come than it can serve: as many as keep the turn of
 * those that it has at RATION_TURN_MS. A proportional-integral controller: the rate follows what was taken in the last
 * seconds, and the error, how far the turn is from that, sets how much more or less is taken now. */
#ifndef GATLING_RATION_H
#define GATLING_RATION_H

#include <stdint.h>

/* A page with ten files, one after the other, then takes less than a tenth of a second. */
enum { RATION_TURN_MS = 2 };

/* How long the turns were of late: a mean over time, which tells a server that has much to do from one that stood still
 * for a moment, as others had its processor. All zero at first. */
struct turns {
	int64_t began_ns; /* the last one */
	double count, ns;
};

/* Notes a turn that began at that time and has taken so long. */
void turns_note(struct turns *turns, int64_t began_ns, int64_t took_ns);

/* Returns how much shorter than RATION_TURN_MS the turns are, as a part of it: 1, nothing is to be done; 0, they are as
 * long; -1, twice as long; -4, five times as long or longer. */
double turns_left(const struct turns *turns);

struct ration {
	double rate;    /* taken in a second */
	double credit;  /* that may be taken */
	unsigned taken; /* since then: */
	int64_t at_ns;
};

/* Begins; rate: how many were taken in a second until now, which was too much. */
void ration_begin(struct ration *ration, double rate, int64_t now_ns);

/* Returns how many may be taken now, as the turns leave that part. */
double ration_left(struct ration *ration, double left, int64_t now_ns);

/* Notes that so many were taken. */
void ration_take(struct ration *ration, unsigned count);

#endif
