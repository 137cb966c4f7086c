/* gate.h - estimates how many connections the kernel has refused at an address while none of its sockets listened. The
 * kernel does not count them. The estimate is their rate while a socket listens, times the time in which none did. It
 * is too low if the clients' round-trip times are longer than the periods of listening. The workers share the gate of
 * an address. */
#ifndef GATLING_GATE_H
#define GATLING_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* When the sums cover more than this time of listening, they are halved. */
enum { GATE_FORGETS_MS = 1000 };

/* The main thread initializes the mutex and sets `listening`; the rest is all zero at first. */
struct gate {
	pthread_mutex_t mutex;
	unsigned listening;     /* how many sockets of the address listen */
	int64_t turned_ns;      /* when the first of them began to listen, or the last one stopped */
	bool counts;            /* the connections of this period are counted from its beginning */
	unsigned came;          /* connections in this period, of the sockets that have stopped */
	double sum, listened_s; /* connections in earlier periods, and the seconds of these */
};

/* Called when a listener begins to count its connections. The current period is left out of the sums, since its first
 * connections were not counted. */
void gate_count(struct gate *gate);

/* Notes that a socket has stopped listening. came: how many connections it had since it began to listen, or since
 * gate_count(). */
void gate_shut(struct gate *gate, unsigned came, int64_t now_ns);

/* Notes that a socket listens again. Returns an estimate of how many connections were refused while no socket of the
 * address listened; 0 if another one did. */
unsigned gate_open(struct gate *gate, int64_t now_ns);

#endif
