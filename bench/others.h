/* others.h - whether other programs took the processors while something was measured. Each process belongs to the
 * measuring program, to the server, to the kernel, or to the others (proc_pid_stat(5)); what the processors were busy
 * with besides is of processes that cannot be seen, as of other containers (proc_stat(5)).
 *
 * On systems without this /proc nobody took anything. */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum {
	OTHERS_TEXT = 160,          /* bytes of what is said */
	OTHERS_PERCENT = 2,         /* of the time of all processors */
	OTHERS_HIDDEN_PERCENT = 10, /* likewise, of processes that cannot be seen: the kernel counts that by samples */
	OTHERS_LEAST_TICKS = 5      /* of 10 ms: less is not seen */
};

/* How much time each process had taken at a moment. */
struct others;

/* Notes the moment at which a measurement begins. server: an address; the processes that listen there are the server,
 * if it is an address of this machine, with those that they have started. NULL: there is none. also: names of programs
 * that work for it, separated by commas, or NULL. Returns NULL if nothing can be known: no memory, or that server's
 * processes are not to be seen. */
struct others *others_begin(const struct sockaddr *server, const char *also);

/* Ends the measurement, and frees it. Returns whether others took more than they may since others_begin(); text says
 * so, with the one that took most, or is "". others may be NULL. */
bool others_end(struct others *others, char text[OTHERS_TEXT]);

#endif
