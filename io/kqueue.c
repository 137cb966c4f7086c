/* kqueue.c - kqueue(2) with EV_CLEAR. A filter is added when a descriptor first has to wait in its direction. The
 * additions are passed to the kernel in the call of the next wait. */
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/event.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/queue.h"

/* As many changes as events, since each change may fail, which is reported as an event. */
enum { EVENTS_PER_WAIT = 256, CHANGES_PER_WAIT = EVENTS_PER_WAIT };

static const char *mechanism_name(void) { return "kqueue"; }

struct kq {
	int fd;
	int changes;
	struct kevent change[CHANGES_PER_WAIT];
	struct kevent event[EVENTS_PER_WAIT];
};

static int prepare(io_loop *loop) {
	struct kq *kq = calloc(1, sizeof *kq);
	if (!kq) return -1;
	loop->mech = kq;
	kq->fd = kqueue();
	return kq->fd == -1 ? -1 : 0;
}

static void release(io_loop *loop) {
	struct kq *kq = loop->mech;
	if (!kq) return;
	if (kq->fd != -1) close(kq->fd);
	free(kq);
}

static void report(io_loop *loop, const struct kevent *event) {
	int fd = (int)event->ident;
	if (event->flags & EV_ERROR) {
		/* the kernel has refused a change: when the descriptor is used next, it is watched again or fails */
		if (!event->data || !io_adopted(loop, fd)) return;
		loop->entry[fd].mech_state = 0;
		io_ready(loop, fd, IO_CAN_READ | IO_CAN_WRITE);
		return;
	}
	unsigned can = event->filter == EVFILT_READ ? IO_CAN_READ : IO_CAN_WRITE;
	if (event->flags & EV_EOF) can |= IO_HANGUP;
	io_ready(loop, fd, can);
}

static int wait_for(io_loop *loop, int64_t timeout_ns) {
	struct kq *kq = loop->mech;
	struct timespec limit = {.tv_sec = timeout_ns / IO_NS_PER_S, .tv_nsec = timeout_ns % IO_NS_PER_S};
	int changes = kq->changes;
	kq->changes = 0; /* the kernel takes them even if the wait is interrupted */
	int n = kevent(kq->fd, kq->change, changes, kq->event, EVENTS_PER_WAIT, timeout_ns < 0 ? NULL : &limit);
	if (n == -1) return errno == EINTR ? 0 : -1;
	for (int i = 0; i < n; i++) report(loop, &kq->event[i]);
	return n == EVENTS_PER_WAIT;
}

static int watch(io_loop *loop, int fd, enum io_direction direction) {
	struct kq *kq = loop->mech;
	struct io_entry *e = &loop->entry[fd];
	if (e->mech_state & 1 << direction) return 0;
	if (kq->changes == CHANGES_PER_WAIT && wait_for(loop, 0) == -1) return -1;
	EV_SET(&kq->change[kq->changes++], (uintptr_t)fd, direction == IO_READ ? EVFILT_READ : EVFILT_WRITE,
		   EV_ADD | EV_CLEAR, 0, 0, 0);
	e->mech_state |= (uint8_t)(1 << direction);
	return 0;
}

/* close(2) removes the filters that the kernel has. Those that it does not have yet must not affect the next owner of
 * the number. */
static void forget(io_loop *loop, int fd) {
	struct kq *kq = loop->mech;
	if (!loop->entry[fd].mech_state) return;
	for (int i = kq->changes - 1; i >= 0; i--)
		if (kq->change[i].ident == (uintptr_t)fd) kq->change[i] = kq->change[--kq->changes];
}

const struct io_mechanism io_kqueue = {
	.name = mechanism_name, .init = prepare, .free = release, .watch = watch, .forget = forget, .wait = wait_for};
