/* gate.h - about how many connections the kernel has refused at an address, because none of its sockets listened. They
 * are not counted anywhere, but those are that come while one listens: too few, if clients are farther away than it
 * listens. The workers share the gate of an address. */
#ifndef GATLING_GATE_H
#define GATLING_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* After so long a time of listening half of it is forgotten. */
enum { GATE_FORGETS_MS = 1000 };

/* The main thread initializes the mutex, and sets `listening`; the rest is all zero at first. */
struct gate {
	pthread_mutex_t mutex;
	unsigned listening;     /* sockets that do */
	int64_t turned_ns;      /* when the last one stopped, or the first one began */
	bool counts;            /* those that came since then have been counted */
	unsigned came;          /* so many did */
	double sum, listened_s; /* of all that came, and in what time */
};

/* Begins to count: a listener tells from now on how many come. */
void gate_count(struct gate *gate);

/* Notes that a socket listens no more. came: as many connections came to it since it listened again, or
 * since gate_count(). */
void gate_shut(struct gate *gate, unsigned came, int64_t now_ns);

/* Notes that a socket listens again. Returns about how many were refused, while none did. */
unsigned gate_open(struct gate *gate, int64_t now_ns);

#endif
