/* epoll.c - epoll(7), edge-triggered. A descriptor is added when it first has to wait, for that direction; the other
 * direction is added when it has to wait, too. Adding one reports readiness that is already there, so none is lost. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/queue.h"

enum { EVENTS_PER_WAIT = 256 };

static const char *mechanism_name(void) { return "epoll"; }

struct epoll {
	int fd;
	struct epoll_event event[EVENTS_PER_WAIT];
};

static int prepare(io_loop *loop) {
	struct epoll *ep = calloc(1, sizeof *ep);
	if (!ep) return -1;
	loop->mech = ep;
	ep->fd = epoll_create1(EPOLL_CLOEXEC);
	return ep->fd == -1 ? -1 : 0;
}

static void release(io_loop *loop) {
	struct epoll *ep = loop->mech;
	if (!ep) return;
	if (ep->fd != -1) close(ep->fd);
	free(ep);
}

static int watch(io_loop *loop, int fd, enum io_direction direction) {
	const struct epoll *ep = loop->mech;
	struct io_entry *e = &loop->entry[fd];
	uint8_t watched = e->mech_state | (uint8_t)(1 << direction);
	if (direction == IO_WRITE)
		watched |= 1 << IO_READ; /* what waits to be written will be read from later: one call for both */
	if (watched == e->mech_state) return 0;
	struct epoll_event event = {.events = EPOLLET | EPOLLRDHUP, .data.fd = fd};
	if (watched & 1 << IO_READ) event.events |= EPOLLIN;
	if (watched & 1 << IO_WRITE) event.events |= EPOLLOUT;
	if (epoll_ctl(ep->fd, e->mech_state ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == -1) return -1;
	e->mech_state = watched;
	return 0;
}

/* close(2) removes a descriptor, unless another one shares its open file description, as those of listeners and of UDP
 * sockets may. */
static void forget(io_loop *loop, int fd) {
	const struct epoll *ep = loop->mech;
	const struct io_entry *e = &loop->entry[fd];
	if (e->shared && e->mech_state) (void)epoll_ctl(ep->fd, EPOLL_CTL_DEL, fd, NULL);
}

static int wait_until(int fd, struct epoll_event *event, int most, const struct timespec *limit) {
#ifdef __GLIBC__
	return epoll_pwait2(fd, event, most, limit, NULL);
#else /* musl has no function for it */
	return (int)syscall(SYS_epoll_pwait2, fd, event, most, limit, NULL, 0);
#endif
}

/* epoll_pwait2(2) needs Linux 5.11, and some containers refuse it: it is used only for times that epoll_wait(2) cannot
 * express. */
static int wait_events(const struct epoll *ep, struct epoll_event *event, int64_t timeout_ns) {
	if (timeout_ns > 0 && timeout_ns % IO_NS_PER_MS) {
		struct timespec limit = {.tv_sec = timeout_ns / IO_NS_PER_S, .tv_nsec = timeout_ns % IO_NS_PER_S};
		int n = wait_until(ep->fd, event, EVENTS_PER_WAIT, &limit);
		if (n != -1 || errno == EINTR) return n;
	}
	int ms = timeout_ns < 0 ? -1 : (int)((timeout_ns + IO_NS_PER_MS - 1) / IO_NS_PER_MS);
	return epoll_wait(ep->fd, event, EVENTS_PER_WAIT, ms);
}

/* Returns the set for io_ready(). */
static unsigned can_of(uint32_t events) {
	unsigned can = 0;
	if (events & EPOLLIN) can |= IO_CAN_READ;
	if (events & EPOLLOUT) can |= IO_CAN_WRITE;
	if (events & EPOLLRDHUP) can |= IO_HANGUP;
	if (events & (EPOLLHUP | EPOLLERR)) can |= IO_HANGUP | IO_CAN_WRITE;
	return can;
}

static int wait_for(io_loop *loop, int64_t timeout_ns) {
	struct epoll *ep = loop->mech;
	int n = wait_events(ep, ep->event, timeout_ns);
	if (n == -1) return errno == EINTR ? 0 : -1;
	for (int i = 0; i < n; i++) io_ready(loop, ep->event[i].data.fd, can_of(ep->event[i].events));
	return n == EVENTS_PER_WAIT;
}

const struct io_mechanism io_epoll = {
	.name = mechanism_name, .init = prepare, .free = release, .watch = watch, .forget = forget, .wait = wait_for};
