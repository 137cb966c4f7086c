/* sigio.c - a real-time signal for each event (F_SETSIG, Linux), taken with sigtimedwait(2). The kernel queues a signal
 * for each change, to the loop's thread. When the queue is full (RLIMIT_SIGPENDING), it sends a plain SIGIO instead;
 * then poll(2) on all watched descriptors finds the events of the signals that were lost. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/queue.h"

enum { EVENTS_PER_WAIT = 256, POLL_AT_ONCE = 512 };

/* TCP sometimes loses the signal that there is room, when acknowledgements come during a send(2) that fills the socket
 * from memory (Linux 6.18, seen only with HTTP/2). While there are writers, all descriptors are polled this often. */
enum { LOST_NS = 100 * IO_NS_PER_MS };

/* mech_state of a descriptor. FOREIGN: its signals go to another thread, which shares the open file description.
 * CLAIMED: they go to this thread. WRITTEN: likewise, and it has waited for room. */
enum { UNKNOWN, FOREIGN, CLAIMED, WRITTEN };

static const char *mechanism_name(void) { return "sigio"; }

struct sigio {
	sigset_t signals;
	pid_t thread;
	bool writers;      /* a descriptor may be waiting for room */
	bool foreign;      /* a descriptor may be FOREIGN: all are polled as for writers */
	int64_t polled_ns; /* when all were polled last */
};

static int event_signal(void) { return SIGRTMIN + 1; }

static int prepare(io_loop *loop) {
	struct sigio *s = calloc(1, sizeof *s);
	if (!s) return -1;
	loop->mech = s;
	s->thread = gettid();
	sigemptyset(&s->signals);
	sigaddset(&s->signals, event_signal());
	sigaddset(&s->signals, SIGIO);
	errno = pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
	return errno ? -1 : 0;
}

static void release(io_loop *loop) { free(loop->mech); }

static void report(io_loop *loop, int fd, long events) {
	unsigned can = 0;
	if (events & POLLIN) can |= IO_CAN_READ;
	if (events & POLLOUT) can |= IO_CAN_WRITE;
	if (events & POLLRDHUP) can |= IO_HANGUP;
	if (events & (POLLHUP | POLLERR)) can |= IO_HANGUP | IO_CAN_WRITE;
	if (can) io_ready(loop, fd, can);
}

static int poll_now(io_loop *loop, struct pollfd *p, int n) {
	if (poll(p, (nfds_t)n, 0) == -1) return -1;
	for (int i = 0; i < n; i++) report(loop, p[i].fd, p[i].revents);
	return 0;
}

enum { WATCHED_EVENTS = POLLIN | POLLOUT | POLLRDHUP };

/* Has the signals of a descriptor sent to this thread. Returns its new state, or -1. If loops share an open file
 * description, perhaps in two processes, the first one has its signals, with its number, until it closes it or ends. */
static int claim(int fd, pid_t thread) {
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	struct f_owner_ex owner, own = {.type = F_OWNER_TID, .pid = thread};
	pthread_mutex_lock(&mutex);
	int flags = fcntl(fd, F_GETFL), result = -1;
	if (flags == -1 || fcntl(fd, F_GETOWN_EX, &owner) == -1) goto end;
	result = FOREIGN;
	if (owner.pid && owner.pid != thread) goto end;
	result = CLAIMED;
	/* the number in the signals is set together with O_ASYNC */
	if ((flags & O_ASYNC && fcntl(fd, F_SETFL, flags & ~O_ASYNC) == -1) || fcntl(fd, F_SETSIG, event_signal()) == -1 ||
		fcntl(fd, F_SETOWN_EX, &own) == -1 || fcntl(fd, F_SETFL, flags | O_ASYNC) == -1)
		result = -1;
end:
	pthread_mutex_unlock(&mutex);
	return result;
}

static bool is_unix(int fd) {
	int domain;
	socklen_t length = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

static int watch(io_loop *loop, int fd, enum io_direction direction) {
	struct sigio *s = loop->mech;
	struct io_entry *e = &loop->entry[fd];
	if (e->mech_state <= FOREIGN) {
		int state = claim(fd, s->thread);
		if (state == -1) return -1;
		e->mech_state = (uint8_t)state;
		s->foreign |= state == FOREIGN;
		/* earlier events sent no signal; for TCP, poll(2) also requests one for when there is room again */
		struct pollfd p = {.fd = fd, .events = WATCHED_EVENTS};
		if (poll_now(loop, &p, 1) == -1) return -1;
	}
	s->writers |= direction == IO_WRITE;
	if (direction == IO_WRITE && e->mech_state == CLAIMED) {
		e->mech_state = WRITTEN;
		/* for a unix socket only an EAGAIN after the claim requests that: let the caller try */
		if (is_unix(fd)) io_ready(loop, fd, IO_CAN_WRITE);
	}
	return 0;
}

/* Signals that are still queued are ignored when they come. */
static void forget(io_loop *loop, int fd) {
	const struct f_owner_ex nobody = {.type = F_OWNER_TID};
	if (loop->entry[fd].mech_state >= CLAIMED) (void)fcntl(fd, F_SETOWN_EX, &nobody);
}

static int poll_all(io_loop *loop) {
	struct sigio *s = loop->mech;
	struct pollfd p[POLL_AT_ONCE];
	int n = 0;
	s->polled_ns = io_read_clock();
	s->writers = s->foreign = false;
	for (int fd = 0; fd < loop->bound; fd++) {
		struct io_entry *e = &loop->entry[fd];
		if (e->cookie && e->mech_state == FOREIGN && claim(fd, s->thread) == CLAIMED) e->mech_state = CLAIMED;
		s->foreign |= e->cookie && e->mech_state == FOREIGN;
		s->writers |= e->cookie && e->want & ~(unsigned)e->can & IO_CAN_WRITE;
		if (e->cookie && e->mech_state) p[n++] = (struct pollfd){.fd = fd, .events = WATCHED_EVENTS};
		if (n == POLL_AT_ONCE || (n && fd == loop->bound - 1)) {
			if (poll_now(loop, p, n) == -1) return -1;
			n = 0;
		}
	}
	return 0;
}

/* Returns whether it is time to poll the descriptors whose signals may be missing. */
static bool is_due(const struct sigio *s) {
	return (s->writers || s->foreign) && io_read_clock() - s->polled_ns >= LOST_NS;
}

static int wait_for(io_loop *loop, int64_t timeout_ns) {
	const struct sigio *s = loop->mech;
	if ((s->writers || s->foreign) && (timeout_ns < 0 || timeout_ns > LOST_NS)) timeout_ns = LOST_NS;
	struct timespec limit = {.tv_sec = timeout_ns / IO_NS_PER_S, .tv_nsec = timeout_ns % IO_NS_PER_S};
	const struct timespec *wait = timeout_ns < 0 ? NULL : &limit;
	int signals = 0;
	for (; signals < EVENTS_PER_WAIT; signals++) {
		siginfo_t info;
		int signal = sigtimedwait(&s->signals, &info, wait);
		if (signal == -1 && errno == EAGAIN) break;
		if (signal == -1) return errno == EINTR ? 0 : -1;
		/* the queue was full; SIGIO has a lower number than the event signal, and so comes first */
		if (signal == SIGIO) {
			if (poll_all(loop) == -1) return -1;
		} else {
			report(loop, info.si_fd, info.si_band);
		}
		limit = (struct timespec){0};
		wait = &limit;
	}
	if (is_due(s) && poll_all(loop) == -1) return -1;
	return signals == EVENTS_PER_WAIT;
}

const struct io_mechanism io_sigio = {
	.name = mechanism_name, .init = prepare, .free = release, .watch = watch, .forget = forget, .wait = wait_for};
