/* kqueue.c - implements kqueue(2) and kevent(2) with epoll(7), for tests on Linux: sockets and pipes, EV_CLEAR, at most
 * KQ_MAX queues for each thread, each used only by the thread that made it. With it, io/kqueue.c runs the same tests as
 * the other mechanisms. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sys/event.h"

enum { KQ_MAX = 4, FD_MAX = 65536, WAIT_MAX = 256 };

static _Thread_local struct queue {
	int fd;                   /* the epoll descriptor; 0: unused */
	uint32_t watched[FD_MAX]; /* EPOLLIN, EPOLLOUT */
} queues[KQ_MAX];

int kqueue(void) {
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd == -1) return -1;
	struct queue *q = NULL;
	for (int i = 0; i < KQ_MAX; i++)
		if (!queues[i].fd || queues[i].fd == fd) q = &queues[i]; /* the same number: the previous one was closed */
	if (!q) {
		close(fd);
		errno = EMFILE;
		return -1;
	}
	memset(q, 0, sizeof *q);
	q->fd = fd;
	return fd;
}

static struct queue *find(int fd) {
	for (int i = 0; i < KQ_MAX; i++)
		if (queues[i].fd == fd) return &queues[i];
	errno = EBADF;
	return NULL;
}

static int apply(struct queue *q, const struct kevent *change) {
	if (change->ident >= FD_MAX || (change->filter != EVFILT_READ && change->filter != EVFILT_WRITE)) {
		errno = EINVAL;
		return -1;
	}
	uint32_t bit = change->filter == EVFILT_READ ? EPOLLIN : EPOLLOUT;
	uint32_t *watched = &q->watched[change->ident];
	uint32_t wanted = change->flags & EV_DELETE ? *watched & ~bit : *watched | bit;
	struct epoll_event event = {.events = wanted | EPOLLET | EPOLLRDHUP, .data.fd = (int)change->ident};
	/* the descriptor may have been closed, and its number reused: epoll has removed it */
	int r = *watched ? epoll_ctl(q->fd, EPOLL_CTL_MOD, event.data.fd, &event) : -1;
	if (r == -1 && (!*watched || errno == ENOENT)) {
		event.events = bit | EPOLLET | EPOLLRDHUP;
		wanted = bit;
		r = epoll_ctl(q->fd, EPOLL_CTL_ADD, event.data.fd, &event);
	}
	if (r == 0) *watched = wanted;
	return r;
}

static int report(const struct queue *q, const struct epoll_event *from, struct kevent *event) {
	int n = 0;
	int fd = from->data.fd;
	uint32_t ended = from->events & (EPOLLHUP | EPOLLERR);
	if (q->watched[fd] & EPOLLIN && from->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		unsigned short eof = ended || from->events & EPOLLRDHUP ? EV_EOF : 0;
		EV_SET(&event[n++], (uintptr_t)fd, EVFILT_READ, (unsigned short)(EV_CLEAR | eof), 0, 0, NULL);
	}
	if (q->watched[fd] & EPOLLOUT && from->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		EV_SET(&event[n++], (uintptr_t)fd, EVFILT_WRITE, (unsigned short)(EV_CLEAR | (ended ? EV_EOF : 0)), 0, 0, NULL);
	return n;
}

int kevent(int kq, const struct kevent *change, int changes, struct kevent *event, int events,
		   const struct timespec *timeout) {
	struct queue *q = find(kq);
	if (!q) return -1;
	int n = 0;
	for (int i = 0; i < changes; i++) {
		if (apply(q, &change[i]) == 0) continue;
		if (n == events) return -1;
		event[n] = change[i];
		event[n].flags = EV_ERROR;
		event[n++].data = errno;
	}
	int room = (events - n) / 2; /* an event of epoll may become two */
	if (room == 0) return n;
	if (room > WAIT_MAX) room = WAIT_MAX;
	struct epoll_event ready[WAIT_MAX];
	struct timespec none = {0};
	int r = epoll_pwait2(q->fd, ready, room, n ? &none : timeout, NULL);
	if (r == -1) return n ? n : -1;
	for (int i = 0; i < r; i++) n += report(q, &ready[i], &event[n]);
	return n;
}
