/* event.h - the part of <sys/event.h> that io/kqueue.c uses, for tests on Linux. See kqueue(2) of FreeBSD. */
#ifndef TESTS_KQUEUE_EVENT_H
#define TESTS_KQUEUE_EVENT_H

#include <stdint.h>
#include <time.h>

struct kevent {
	uintptr_t ident;
	short filter;
	unsigned short flags;
	unsigned fflags;
	int64_t data;
	void *udata;
};

enum { EVFILT_READ = -1, EVFILT_WRITE = -2 };
enum { EV_ADD = 0x1, EV_DELETE = 0x2, EV_CLEAR = 0x20, EV_ERROR = 0x4000, EV_EOF = 0x8000 };

#define EV_SET(kev, a, b, c, d, e, f)                                                                                  \
	(*(kev) =                                                                                                          \
		 (struct kevent){.ident = (a), .filter = (b), .flags = (c), .fflags = (d), .data = (e), .udata = (void *)(f)})

int kqueue(void);
int kevent(int kq, const struct kevent *change, int changes, struct kevent *event, int events,
		   const struct timespec *timeout);

#endif
