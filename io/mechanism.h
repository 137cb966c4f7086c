/* mechanism.h - an event mechanism: one file that defines one of these structures. The build links those that it may
 * need, and default.c names the one that loops begin with. Internal to io/.
 *
 * A mechanism may read all of the loop, and reports through queue.h. It owns `mech` of the loop, and mech_index and
 * mech_state of each entry, which are 0 when a descriptor is adopted. */
#ifndef GATLING_IO_MECHANISM_H
#define GATLING_IO_MECHANISM_H

#include "io/internal.h"

struct io_mechanism {
	const char *(*name)(void);

	/* Prepares a loop. If the kernel does not have this mechanism, it may set loop->mechanism to another one and
	 * prepare that. Returns 0, or -1 with errno; free() is called in either case. */
	int (*init)(io_loop *loop);
	void (*free)(io_loop *loop);

	/* Called each time that fd is wanted in this direction and was not ready when last used. From then on its readiness
	 * must be reported, also if it came before this call. The mechanism is not told when a direction is no longer
	 * wanted: the loop keeps such reports until it is. May call io_ready(). Returns 0, or -1 with errno. */
	int (*watch)(io_loop *loop, int fd, enum io_direction direction);

	/* Called before fd, watched or not, is closed. Afterwards nothing may refer to it. */
	void (*forget)(io_loop *loop, int fd);

	/* Waits up to timeout_ns (-1: no limit), rounded up to the mechanism's unit, and reports through io_ready().
	 * Returns 0 if everything that is ready has been reported, 1 if there may be more, or -1 with errno (but 0 for
	 * EINTR). */
	int (*wait)(io_loop *loop, int64_t timeout_ns);

	/* NULL, except for a mechanism that reads by itself. Returns whether it does so for fd; then *result is what
	 * io_tryread() has to return, errno is set, and readiness has been noted. */
	bool (*received)(io_loop *loop, int fd, void *buffer, size_t length, ssize_t *result);
};

extern const struct io_mechanism io_epoll, io_uring, io_kqueue, io_sigio, io_poll;

/* The mechanism of a new loop. */
extern const struct io_mechanism *const io_default;

#endif
