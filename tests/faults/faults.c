/* faults.c - a library for LD_PRELOAD that makes the nth call of a function fail, or transfer less than requested. Its
 * orders, and counts of the calls, are in a file that it maps (the variable FAULTS names it), so that one server lives
 * through thousands of faults. See faults.py, which has the same structure.
 *
 * Failures are like those of the kernel: close(2) closes the descriptor and then fails; after a short transfer or
 * EAGAIN, epoll(7) reports a ready socket again; after EPIPE or ECONNRESET, a socket is dead. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALLS(X)                                                                                                       \
	X(malloc), X(calloc), X(realloc), X(posix_memalign), X(aligned_alloc), X(accept4), X(close), X(connect), X(dup),   \
		X(epoll_ctl), X(epoll_wait), X(epoll_pwait2), X(fcntl), X(fdopendir), X(fstat), X(fstatat), X(getsockname),    \
		X(getsockopt), X(ioctl), X(open), X(openat), X(openat2), X(pipe2), X(poll), X(posix_fadvise), X(pread),        \
		X(preadv2), X(pthread_create), X(read), X(readdir), X(readlinkat), X(recv), X(recvmmsg), X(recvmsg), X(send),  \
		X(sendfile), X(sendmsg), X(setsockopt), X(shutdown), X(socket), X(splice), X(write), X(writev)

#define NUMBER(name) CALL_##name
#define NAME(name) #name
enum { CALLS(NUMBER), CALLS_COUNT };
static const char *const names[] = {CALLS(NAME)};

enum { CALLS_MAX = 64, NAME_MAX_LENGTH = 16, DESCRIPTORS = 1 << 16, FAULT_SHORT = 0 };

static struct shared {
	char name[CALLS_MAX][NAME_MAX_LENGTH]; /* written at the start */
	atomic_int_fast64_t called[CALLS_MAX];
	atomic_int_fast64_t armed;  /* number of the call plus 1; 0: nothing fails */
	int64_t error;              /* an errno; or FAULT_SHORT: the call transfers at most */
	int64_t length;             /* this many bytes */
	int64_t first, times;       /* the first of the failing calls, and how many; counted from 1 since called was 0 */
	atomic_int_fast64_t hits;   /* how many have failed */
	atomic_int_fast64_t unused; /* -1: it is to be found out at the next connection; bytes that malloc(3) keeps */
} * shared;

_Static_assert((int)CALLS_COUNT <= (int)CALLS_MAX, "the table is too small");

static pid_t server;               /* calls of its children do not count */
static _Thread_local bool started; /* what a sanitizer does to begin a thread does not count */

static struct {
	int epoll;
	struct epoll_event event;
} registered[DESCRIPTORS];

#define REAL(name)                                                                                                     \
	static __typeof__(name) *real;                                                                                     \
	if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* Counts a call. Returns whether it is to fail. */
static bool is_hit(int call) {
	if (!shared || !started || getpid() != server) return false;
	int64_t n = atomic_fetch_add(&shared->called[call], 1) + 1;
	if (atomic_load(&shared->armed) != call + 1) return false;
	return n >= shared->first && n - shared->first < shared->times;
}

static bool fails(int call) {
	if (!is_hit(call) || shared->error == FAULT_SHORT) return false;
	atomic_fetch_add(&shared->hits, 1);
	errno = (int)shared->error;
	return true;
}

/* Makes the kernel report the descriptor again, if it is ready. */
static void report_again(int fd) {
	int error = errno;
	if (fd >= 0 && fd < DESCRIPTORS && registered[fd].epoll)
		syscall(SYS_epoll_ctl, registered[fd].epoll, EPOLL_CTL_MOD, fd, &registered[fd].event);
	errno = error;
}

/* Makes the socket behave as after an RST from its peer. */
static void kill_socket(int fd) {
	int error = errno;
	syscall(SYS_shutdown, fd, SHUT_WR); /* the sandbox does not allow SHUT_RDWR */
	syscall(SYS_shutdown, fd, SHUT_RD);
	errno = error;
}

/* Returns whether the kernel never says so of this socket between the server and a process beside it: that the process
 * is gone, while it is there (what follows when one has ended is tested elsewhere); or that a call is interrupted, or
 * would block, although the socket blocks and no signal is handled. */
static bool is_never_said(int error, int fd) {
	int domain = 0;
	socklen_t n = sizeof domain;
	if (error != EPIPE && error != ECONNRESET && error != EAGAIN && error != EINTR) return false;
	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == -1 || domain != AF_UNIX) return false;
	return error == EPIPE || error == ECONNRESET || !(syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK);
}

/* Returns whether a transfer is to fail. Otherwise it may move only *length bytes; *is_short: that is fewer. */
static bool transfer_fails(int call, int fd, size_t *length, bool *is_short) {
	*is_short = false;
	if (!is_hit(call) || is_never_said((int)shared->error, fd)) return false;
	if (shared->error != FAULT_SHORT) {
		atomic_fetch_add(&shared->hits, 1);
		errno = (int)shared->error;
		if (errno == EAGAIN) report_again(fd);
		if (errno == EPIPE || errno == ECONNRESET) kill_socket(fd);
		return true;
	}
	*is_short = *length > (size_t)shared->length;
	if (!*is_short) return false;
	*length = (size_t)shared->length;
	atomic_fetch_add(&shared->hits, 1);
	return false;
}

/* The first child of the process is the server. */
static unsigned forks;
static void before_fork(void) { forks++; }
static void in_child(void) {
	if (forks == 1) server = getpid();
}

__attribute__((constructor)) static void begin(void) {
	const char *path = getenv("FAULTS");
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
	if (fd == -1) return;
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (s == MAP_FAILED) abort();
	for (int i = 0; i < CALLS_COUNT; i++) strncpy(s->name[i], names[i], NAME_MAX_LENGTH - 1);
	if (pthread_atfork(before_fork, NULL, in_child) != 0) abort();
	started = true;
	shared = s;
}

/* --- memory --- */

/* Memory for dlsym(3) and for a starting sanitizer, which need it before there is a malloc(). */
static char early[1 << 16];
static size_t early_used;

static void *early_allocate(size_t size) {
	void *at = early + early_used;
	early_used += (size + 15) / 16 * 16;
	if (early_used > sizeof early) abort();
	return at;
}

static bool is_early(const void *p) { return (const char *)p >= early && (const char *)p < early + sizeof early; }

#define REAL_ALLOCATOR(name, otherwise)                                                                                \
	static __typeof__(name) *real;                                                                                     \
	static _Thread_local bool looking;                                                                                 \
	if (looking) return otherwise;                                                                                     \
	if (!real) {                                                                                                       \
		looking = true;                                                                                                \
		real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                                                            \
		looking = false;                                                                                               \
		if (!real) return otherwise;                                                                                   \
	}

void *malloc(size_t size) {
	REAL_ALLOCATOR(malloc, early_allocate(size));
	return fails(CALL_malloc) ? NULL : real(size);
}

void *calloc(size_t count, size_t size) {
	REAL_ALLOCATOR(calloc, early_allocate(count * size));
	return fails(CALL_calloc) ? NULL : real(count, size);
}

void *realloc(void *old, size_t size) {
	REAL_ALLOCATOR(realloc, NULL);
	return fails(CALL_realloc) ? NULL : real(old, size);
}

int posix_memalign(void **p, size_t alignment, size_t size) {
	REAL_ALLOCATOR(posix_memalign, ENOMEM);
	return fails(CALL_posix_memalign) ? ENOMEM : real(p, alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
	REAL_ALLOCATOR(aligned_alloc, NULL);
	return fails(CALL_aligned_alloc) ? NULL : real(alignment, size);
}

/* Looked up at the start, since dlsym(3) itself calls free(). */
static __typeof__(free) *real_free;

void free(void *p) {
	if (!p || is_early(p) || !real_free) return;
	real_free(p);
}

__attribute__((constructor)) static void find_free(void) { real_free = (__typeof__(free) *)dlsym(RTLD_NEXT, "free"); }

/* --- calls that succeed or fail --- */

#ifdef __GLIBC__
typedef unsigned long ioctl_command;
typedef int flags_of_many;
#else /* musl, which has no epoll_pwait2() */
typedef int ioctl_command;
typedef unsigned flags_of_many;
int epoll_pwait2(int fd, struct epoll_event *e, int n, const struct timespec *t, const sigset_t *mask);
#endif

#define FAILING(result, name, parameters, arguments, failed)                                                           \
	result name parameters {                                                                                           \
		REAL(name);                                                                                                    \
		return fails(CALL_##name) ? (failed) : real arguments;                                                         \
	}

FAILING(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
FAILING(int, dup, (int fd), (fd), -1)
FAILING(int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms), -1)
FAILING(int, epoll_pwait2, (int fd, struct epoll_event *e, int n, const struct timespec *t, const sigset_t *mask),
		(fd, e, n, t, mask), -1)
FAILING(DIR *, fdopendir, (int fd), (fd), NULL)
FAILING(int, fstat, (int fd, struct stat *st), (fd, st), -1)
FAILING(int, fstatat, (int fd, const char *restrict path, struct stat *restrict st, int flags), (fd, path, st, flags),
		-1)
FAILING(int, getsockname, (int fd, struct sockaddr *restrict a, socklen_t *restrict n), (fd, a, n), -1)
FAILING(int, getsockopt, (int fd, int level, int name, void *restrict value, socklen_t *restrict n),
		(fd, level, name, value, n), -1)
FAILING(int, pipe2, (int pair[2], int flags), (pair, flags), -1)
FAILING(int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms), -1)
FAILING(int, posix_fadvise, (int fd, off_t at, off_t length, int advice), (fd, at, length, advice), (int)shared->error)
FAILING(struct dirent *, readdir, (DIR * d), (d), NULL)
FAILING(ssize_t, readlinkat, (int fd, const char *restrict path, char *restrict to, size_t n), (fd, path, to, n), -1)
FAILING(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n), (fd, level, name, value, n), -1)
FAILING(int, shutdown, (int fd, int how), (fd, how), -1)
FAILING(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)

/* Returns the bytes that malloc(3) keeps, and that nothing is in. */
static int64_t unused(void) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
	return (int64_t)mallinfo2().fordblks; /* of all arenas */
#else
	return 0;
#endif
}

int accept4(int fd, struct sockaddr *restrict a, socklen_t *restrict n, int flags) {
	REAL(accept4);
	if (shared && atomic_load(&shared->unused) == -1 && getpid() == server) atomic_store(&shared->unused, unused());
	if (!fails(CALL_accept4)) return real(fd, a, n, flags);
	if (errno == EAGAIN) report_again(fd);
	return -1;
}

int close(int fd) {
	REAL(close);
	int result = real(fd);
	if (fd >= 0 && fd < DESCRIPTORS) registered[fd].epoll = 0;
	return fails(CALL_close) ? -1 : result;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
	REAL(epoll_ctl);
	if (fails(CALL_epoll_ctl)) return -1;
	int result = real(epoll, operation, fd, event);
	if (result == 0 && event && fd < DESCRIPTORS) {
		registered[fd].epoll = epoll;
		registered[fd].event = *event;
	}
	return result;
}

static struct start {
	atomic_bool taken;
	void *(*run)(void *);
	void *argument;
} starts[16];

static void *start(void *taken) {
	struct start s = *(struct start *)taken;
	atomic_store(&((struct start *)taken)->taken, false);
	started = true;
	return s.run(s.argument);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *),
				   void *restrict argument) {
	REAL(pthread_create);
	if (fails(CALL_pthread_create)) return (int)shared->error;
	struct start *s = starts;
	while (atomic_exchange(&s->taken, true)) s = s + 1 < starts + sizeof starts / sizeof *starts ? s + 1 : starts;
	s->run = run;
	s->argument = argument;
	int error = real(thread, attributes, start, s);
	if (error) atomic_store(&s->taken, false);
	return error;
}

/* Takes the argument behind the named ones. */
#define LAST(type, before)                                                                                             \
	va_list list;                                                                                                      \
	va_start(list, before);                                                                                            \
	type last = va_arg(list, type);                                                                                    \
	va_end(list)

int fcntl(int fd, int command, ...) {
	REAL(fcntl);
	LAST(void *, command);
	return fails(CALL_fcntl) ? -1 : real(fd, command, last);
}

int ioctl(int fd, ioctl_command command, ...) {
	REAL(ioctl);
	LAST(void *, command);
	return fails(CALL_ioctl) ? -1 : real(fd, command, last);
}

int open(const char *path, int flags, ...) {
	REAL(open);
	LAST(mode_t, flags);
	return fails(CALL_open) ? -1 : real(path, flags, last);
}

int openat(int fd, const char *path, int flags, ...) {
	REAL(openat);
	LAST(mode_t, flags);
	return fails(CALL_openat) ? -1 : real(fd, path, flags, last);
}

long syscall(long number, ...) {
	REAL(syscall);
	long a[6];
	va_list list;
	va_start(list, number);
	for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat2 && fails(CALL_openat2)) return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- calls that transfer bytes --- */

#define TRANSFER(name, parameters, arguments, fd, length)                                                              \
	ssize_t name parameters {                                                                                          \
		REAL(name);                                                                                                    \
		bool is_short;                                                                                                 \
		if (transfer_fails(CALL_##name, fd, &(length), &is_short)) return -1;                                          \
		ssize_t result = real arguments;                                                                               \
		if (is_short) report_again(fd);                                                                                \
		return result;                                                                                                 \
	}

TRANSFER(read, (int fd, void *to, size_t n), (fd, to, n), fd, n)
TRANSFER(write, (int fd, const void *from, size_t n), (fd, from, n), fd, n)
TRANSFER(pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), fd, n)
TRANSFER(recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), fd, n)
TRANSFER(send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags), fd, n)
TRANSFER(sendfile, (int to, int from, off_t *at, size_t n), (to, from, at, n), to, n)

ssize_t splice(int from, off_t *from_at, int to, off_t *to_at, size_t n, unsigned flags) {
	REAL(splice);
	bool is_short;
	const bool to_fails = shared && shared->error == EPIPE;
	if (transfer_fails(CALL_splice, to_fails ? to : from, &n, &is_short)) {
		if (errno == EAGAIN) report_again(to);
		return -1;
	}
	ssize_t result = real(from, from_at, to, to_at, n, flags);
	if (is_short) {
		report_again(from);
		report_again(to);
	}
	return result;
}

/* Shortens the parts, in a copy, to length bytes. Returns how many parts remain. */
static int shorten(struct iovec *copy, const struct iovec *part, int parts, size_t length) {
	int i = 0;
	for (; i < parts && length; length -= copy[i++].iov_len) {
		copy[i] = part[i];
		if (copy[i].iov_len > length) copy[i].iov_len = length;
	}
	return i;
}

static size_t length_of(const struct iovec *part, int parts) {
	size_t length = 0;
	for (int i = 0; i < parts; i++) length += part[i].iov_len;
	return length;
}

#define TRANSFER_PARTS(name, parameters, arguments, fd, part, parts)                                                   \
	ssize_t name parameters {                                                                                          \
		REAL(name);                                                                                                    \
		struct iovec copy[IOV_MAX];                                                                                    \
		size_t length = length_of(part, (int)(parts));                                                                 \
		bool is_short;                                                                                                 \
		if (transfer_fails(CALL_##name, fd, &length, &is_short)) return -1;                                            \
		int count = is_short ? shorten(copy, part, (int)(parts), length) : (int)(parts);                               \
		const struct iovec *use = is_short ? copy : (part);                                                            \
		ssize_t result = real arguments;                                                                               \
		if (is_short) report_again(fd);                                                                                \
		return result;                                                                                                 \
	}

TRANSFER_PARTS(writev, (int fd, const struct iovec *part, int parts), (fd, use, count), fd, part, parts)
TRANSFER_PARTS(preadv2, (int fd, const struct iovec *part, int parts, off_t at, int flags), (fd, use, count, at, flags),
			   fd, part, parts)

static struct msghdr with_parts(const struct msghdr *message, const struct iovec *part, int parts) {
	struct msghdr m = *message;
	m.msg_iov = (struct iovec *)(uintptr_t)part;
	m.msg_iovlen = (size_t)parts;
	return m;
}

/* A datagram is sent whole or not, and its socket outlives every error. */
static bool datagram_fails(int call, int fd) {
	if (!fails(call)) return false;
	if (errno == EAGAIN) report_again(fd);
	return true;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
	REAL(sendmsg);
	struct iovec copy[IOV_MAX];
	size_t length = length_of(message->msg_iov, (int)message->msg_iovlen);
	bool is_short;
	if (message->msg_name) return datagram_fails(CALL_sendmsg, fd) ? -1 : real(fd, message, flags);
	if (transfer_fails(CALL_sendmsg, fd, &length, &is_short)) return -1;
	if (!is_short) return real(fd, message, flags);
	const struct msghdr shortened =
		with_parts(message, copy, shorten(copy, message->msg_iov, (int)message->msg_iovlen, length));
	const ssize_t result = real(fd, &shortened, flags);
	report_again(fd);
	return result;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned most, flags_of_many flags, struct timespec *limit) {
	REAL(recvmmsg);
	return datagram_fails(CALL_recvmmsg, fd) ? -1 : real(fd, messages, most, flags, limit);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
	REAL(recvmsg);
	if (is_never_said(shared ? (int)shared->error : 0, fd) || !fails(CALL_recvmsg)) return real(fd, message, flags);
	if (errno == EAGAIN) report_again(fd);
	return -1;
}
