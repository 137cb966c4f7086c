/* mechanism.h - an event mechanism: one file that defines one of these structures. The build links those that it may
 * need, and default.c names the one that loops begin with. Internal to io/.
 *
 * A mechanism may read all of the loop and reports through queue.h. It writes `mech`, and of an entry mech_index and
 * mech_state, which are 0 when a descriptor is adopted. */
#ifndef GATLING_IO_MECHANISM_H
#define GATLING_IO_MECHANISM_H

#include "io/internal.h"

struct io_mechanism {
	const char *(*name)(void);

	/* Prepares a loop. It may set loop->mechanism to another mechanism, and prepare that, if the kernel has not got
	 * this one. 0, or -1 with errno; free() is called then, too. */
	int (*init)(io_loop *loop);
	void (*free)(io_loop *loop);

	/* fd is wanted in this direction and was not ready when last used: from here on a change must be reported, and also
	 * readiness that came before this call. Called again each time that holds anew. A direction that is not wanted any
	 * more is not announced: reports about it are kept until it is wanted. May call io_ready(). 0, or -1 with errno. */
	int (*watch)(io_loop *loop, int fd, enum io_direction direction);

	/* fd, watched or not, is about to be closed: afterwards nothing may refer to it. */
	void (*forget)(io_loop *loop, int fd);

	/* Waits up to timeout_ns (-1: no limit; a mechanism that cannot count in nanoseconds rounds up) and reports through
	 * io_ready(). Returns 0 when all that is ready has been reported, or none; 1 when there may be more; or -1 with
	 * errno (EINTR is not an error). */
	int (*wait)(io_loop *loop, int64_t timeout_ns);

	/* NULL, or for a mechanism that reads by itself: whether it does so for fd. Then *result is what io_tryread() is to
	 * return, with its errno, and readiness has been noted. */
	bool (*received)(io_loop *loop, int fd, void *buffer, size_t length, ssize_t *result);
};

extern const struct io_mechanism io_epoll, io_uring, io_kqueue, io_sigio, io_poll;

/* The mechanism of a new loop. */
extern const struct io_mechanism *const io_default;

#endif
