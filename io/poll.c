/* poll.c - poll(2). The array holds the descriptors that wait, with the directions that they wait for; those that
 * become ready are removed. By the nature of poll(2) a wait costs O(waiting), in the kernel and here. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "io/mechanism.h"
#include "io/queue.h"

enum { ARRAY_MINIMUM = 64 };

static const char *mechanism_name(void) { return "poll"; }

struct poll_array {
	struct pollfd *waiting;
	int length, size;
};

#ifdef POLLRDHUP
enum { HALF_CLOSED = POLLRDHUP };
#else
enum { HALF_CLOSED = 0 }; /* POLLIN reports it there */
#endif

static int prepare(io_loop *loop) {
	loop->mech = calloc(1, sizeof(struct poll_array));
	return loop->mech ? 0 : -1;
}

static void release(io_loop *loop) {
	struct poll_array *a = loop->mech;
	if (a) free(a->waiting);
	free(a);
}

/* mech_index is the index in the array plus 1, or 0 for a descriptor that is not in it. */
static int watch(io_loop *loop, int fd, enum io_direction direction) {
	struct poll_array *a = loop->mech;
	struct io_entry *e = &loop->entry[fd];
	if (!e->mech_index) {
		if (a->length == a->size) {
			int size = a->size ? 2 * a->size : ARRAY_MINIMUM;
			struct pollfd *waiting = realloc(a->waiting, (size_t)size * sizeof *waiting);
			if (!waiting) return -1;
			a->waiting = waiting;
			a->size = size;
		}
		a->waiting[a->length++] = (struct pollfd){.fd = fd};
		e->mech_index = a->length;
	}
	a->waiting[e->mech_index - 1].events |= direction == IO_READ ? POLLIN | HALF_CLOSED : POLLOUT;
	return 0;
}

static void forget(io_loop *loop, int fd) {
	struct poll_array *a = loop->mech;
	int index = loop->entry[fd].mech_index;
	if (!index) return;
	loop->entry[fd].mech_index = 0;
	struct pollfd last = a->waiting[--a->length];
	if (last.fd == fd) return;
	a->waiting[index - 1] = last;
	loop->entry[last.fd].mech_index = index;
}

static int wait_for(io_loop *loop, int64_t timeout_ns) {
	struct poll_array *a = loop->mech;
	int n = poll(a->waiting, (nfds_t)a->length,
				 timeout_ns < 0 ? -1 : (int)((timeout_ns + IO_NS_PER_MS - 1) / IO_NS_PER_MS));
	if (n == -1) return errno == EINTR ? 0 : -1;
	/* backwards: a free place is filled with the last element, which has been handled by then */
	for (int i = a->length - 1; i >= 0 && n > 0; i--) {
		struct pollfd *p = &a->waiting[i];
		if (!p->revents) continue;
		n--;
		unsigned can = 0;
		if (p->revents & (POLLIN | HALF_CLOSED)) can |= IO_CAN_READ;
		if (p->revents & POLLOUT) can |= IO_CAN_WRITE;
		if (p->revents & (POLLHUP | POLLERR | POLLNVAL)) can |= IO_CAN_WRITE | IO_HANGUP;
		if (can & IO_CAN_READ) p->events &= ~(POLLIN | HALF_CLOSED);
		if (can & IO_CAN_WRITE) p->events &= ~POLLOUT;
		int fd = p->fd;
		if (!p->events || can & IO_HANGUP) forget(loop, fd);
		io_ready(loop, fd, can);
	}
	return 0;
}

const struct io_mechanism io_poll = {
	.name = mechanism_name, .init = prepare, .free = release, .watch = watch, .forget = forget, .wait = wait_for};
