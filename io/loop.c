/* loop.c - the loop: the table of descriptors, what is read from them and written to them, and io_wait(). Its cost is
 * O(ready): it never walks the open descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/queue.h"
#include "io/reader.h"
#include "io/internal.h"

enum { TABLE_MINIMUM = 64 };

const char *io_mechanism(void) { return io_default->name(); }

int64_t io_now(const io_loop *loop) { return loop->now_ns / IO_NS_PER_MS; }
int64_t io_now_ns(const io_loop *loop) { return loop->now_ns; }

/* The wake pipe is watched but never wanted, so that no queue hands it out. A mechanism may report it in the middle of
 * a turn. */
static int watch_wake(io_loop *loop) {
	(void)io_unready(loop, loop->wake_read, IO_READ);
	return loop->mechanism->watch(loop, loop->wake_read, IO_READ);
}

static int open_wake(io_loop *loop) {
	if (io_wake_open(loop) == -1 || io_fd(loop, loop->wake_read, loop) == -1) return -1;
	return watch_wake(loop);
}

io_loop *io_loop_new(void) {
	io_loop *loop = calloc(1, sizeof *loop);
	if (!loop) return NULL;
	loop->wake_read = loop->wake_write = -1;
	loop->splice_read = loop->splice_write = -1;
	loop->queue[IO_READ].last = loop->queue[IO_WRITE].last = -1;
	loop->mechanism = io_default;
	loop->now_ns = io_read_clock();
	io_timer_init(loop);
	if (loop->mechanism->init(loop) == -1 || open_wake(loop) == -1) {
		int error = errno;
		io_loop_free(loop);
		errno = error;
		return NULL;
	}
	return loop;
}

void io_loop_free(io_loop *loop) {
	if (!loop) return;
	io_reader_free(loop->reader);
	loop->mechanism->free(loop);
	io_wake_close(loop);
	if (loop->splice_read >= 0) close(loop->splice_read);
	if (loop->splice_write >= 0) close(loop->splice_write);
	for (int d = 0; d < IO_DIRECTIONS; d++) free(loop->later[d].fd);
	free(loop->alarm);
	free(loop->entry);
	free(loop);
}

static int table_grow(io_loop *loop, int fd) {
	int size = loop->size ? loop->size : TABLE_MINIMUM;
	while (size <= fd) size *= 2;
	/* not realloc(3): new pages of zeros take no memory until a descriptor needs them */
	struct io_entry *entry = calloc((size_t)size, sizeof *entry);
	if (!entry) return -1;
	if (loop->size) memcpy(entry, loop->entry, (size_t)loop->size * sizeof *entry);
	free(loop->entry);
	loop->entry = entry;
	loop->size = size;
	return 0;
}

int io_fd(io_loop *loop, int fd, void *cookie) {
	if (fd < 0 || io_adopted(loop, fd)) {
		errno = EBADF;
		return -1;
	}
	if (fd >= loop->size && table_grow(loop, fd) == -1) return -1;
	if (fd >= loop->bound) loop->bound = fd + 1;
	struct io_entry *e = &loop->entry[fd];
	/* queued and queue_next stay: the number may still be queued for its last owner */
	e->cookie = cookie;
	e->can = IO_CAN_READ | IO_CAN_WRITE;
	e->want = e->postponed = 0;
	e->again = e->hangup = e->reading = e->meanwhile = e->read = e->shared = false;
	e->mech_index = 0;
	e->mech_state = 0;
	return 0;
}

void *io_cookie(const io_loop *loop, int fd) {
	return fd >= 0 && fd < loop->bound && fd != loop->wake_read ? loop->entry[fd].cookie : NULL;
}

int io_fd_bound(const io_loop *loop) { return loop->bound; }

void io_close(io_loop *loop, int fd) {
	loop->mechanism->forget(loop, fd);
	io_timer_cancel(loop, fd);
	io_reader_forget(loop, fd);
	loop->entry[fd].cookie = NULL;
	loop->entry[fd].want = loop->entry[fd].postponed = 0;
	close(fd);
}

bool io_reading(const io_loop *loop, int fd) { return loop->entry[fd].reading; }

void io_write_meanwhile(io_loop *loop, int fd, bool meanwhile) {
	struct io_entry *e = &loop->entry[fd];
	e->meanwhile = meanwhile;
	if (e->reading && io_queue_due(e, IO_WRITE)) io_queue_add(loop, fd, IO_WRITE);
}

int io_not_ready(io_loop *loop, int fd, enum io_direction d) {
	return io_unready(loop, fd, d) ? loop->mechanism->watch(loop, fd, d) : 0;
}

void io_mark_readable(io_loop *loop, int fd) { io_ready(loop, fd, IO_CAN_READ); }
int io_eagain_read(io_loop *loop, int fd) { return io_not_ready(loop, fd, IO_READ); }
int io_eagain_write(io_loop *loop, int fd) { return io_not_ready(loop, fd, IO_WRITE); }

static int want(io_loop *loop, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	if (e->want & 1 << d) return 0;
	e->want |= (uint8_t)(1 << d);
	if (!(e->can & 1 << d)) return loop->mechanism->watch(loop, fd, d);
	io_queue_add(loop, fd, d);
	return 0;
}

int io_wantread(io_loop *loop, int fd) { return want(loop, fd, IO_READ); }
int io_wantwrite(io_loop *loop, int fd) { return want(loop, fd, IO_WRITE); }
void io_dontwantread(io_loop *loop, int fd) { loop->entry[fd].want &= (uint8_t)~IO_CAN_READ; }
void io_dontwantwrite(io_loop *loop, int fd) { loop->entry[fd].want &= (uint8_t)~IO_CAN_WRITE; }

int io_want(io_loop *loop, int fd, bool read, bool write) {
	if (!read) io_dontwantread(loop, fd);
	if (!write) io_dontwantwrite(loop, fd);
	return (read && want(loop, fd, IO_READ) == -1) || (write && want(loop, fd, IO_WRITE) == -1) ? -1 : 0;
}

/* --- the system calls that move bytes, and the bookkeeping of readiness around them --- */

ssize_t io_exhausted(io_loop *loop, int fd, enum io_direction d, ssize_t result) {
	struct io_entry *e = &loop->entry[fd];
	bool watched = io_not_ready(loop, fd, d) == 0;
	if (result == -1) {
		if (watched) errno = EAGAIN;
	} else if (!watched) { /* the next call reports the error */
		e->can |= (uint8_t)(1 << d);
	}
	return result;
}

/* Notes readiness, and returns the result of a call. On a stream socket a short transfer proves that the kernel's
 * buffer is empty (or full), so that the next call would fail with EAGAIN; see epoll(7). */
static ssize_t note(io_loop *loop, int fd, enum io_direction d, ssize_t result, size_t length) {
	if (result > 0 && (size_t)result == length) return result;
	if (result == 0 || (result == -1 && errno != EAGAIN && errno != EWOULDBLOCK)) return result;
	struct io_entry *e = &loop->entry[fd];
	if (result > 0 && d == IO_READ && (e->again || e->hangup)) {
		e->again = false;
		return result;
	}
	return io_exhausted(loop, fd, d, result);
}

/* The calls for sockets are tried first: they cost less than read(2) and write(2), by 2 % of a small request. */
ssize_t io_tryread(io_loop *loop, int fd, void *buffer, size_t length) {
	ssize_t r;
	if (loop->mechanism->received && loop->mechanism->received(loop, fd, buffer, length, &r)) return r;
	do r = recv(fd, buffer, length, 0);
	while (r == -1 && errno == EINTR);
	if (r == -1 && errno == ENOTSOCK) r = read(fd, buffer, length);
	return note(loop, fd, IO_READ, r, length);
}

static ssize_t send_one(io_loop *loop, int fd, const void *buffer, size_t length, int flags) {
	ssize_t r;
	do r = send(fd, buffer, length, flags);
	while (r == -1 && errno == EINTR);
	if (r == -1 && errno == ENOTSOCK) r = write(fd, buffer, length);
	return note(loop, fd, IO_WRITE, r, length);
}

ssize_t io_trywrite(io_loop *loop, int fd, const void *buffer, size_t length) {
	return send_one(loop, fd, buffer, length, MSG_NOSIGNAL);
}

ssize_t io_trywritev(io_loop *loop, int fd, const struct iovec *part, int parts, enum io_rest rest) {
	const int flags = MSG_NOSIGNAL | (rest == IO_MORE ? IO_MSG_MORE : 0);
	if (parts == 1) return send_one(loop, fd, part->iov_base, part->iov_len, flags);
	struct msghdr message = {.msg_iov = (struct iovec *)part, .msg_iovlen = (size_t)parts};
	size_t length = 0;
	for (int i = 0; i < parts; i++) length += part[i].iov_len;
	ssize_t r;
	do r = sendmsg(fd, &message, flags);
	while (r == -1 && errno == EINTR);
	if (r == -1 && errno == ENOTSOCK) r = writev(fd, part, parts);
	return note(loop, fd, IO_WRITE, r, length);
}

static int accept_nonblocking(int fd, struct sockaddr *peer, socklen_t *peer_length) {
#ifdef __APPLE__ /* it has no accept4(2) */
	int s = accept(fd, peer, peer_length);
	if (s != -1 && (fcntl(s, F_SETFL, O_NONBLOCK) == -1 || fcntl(s, F_SETFD, FD_CLOEXEC) == -1)) {
		int error = errno;
		close(s);
		errno = error;
		return -1;
	}
	return s;
#elif defined(__NetBSD__)
	return paccept(fd, peer, peer_length, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
#else
	return accept4(fd, peer, peer_length, SOCK_NONBLOCK | SOCK_CLOEXEC);
#endif
}

int io_accept(io_loop *loop, int fd, struct sockaddr *peer, socklen_t *peer_length) {
	int s;
	loop->entry[fd].shared = true;
	do s = accept_nonblocking(fd, peer, peer_length);
	while (s == -1 && (errno == EINTR || errno == ECONNABORTED));
	return s == -1 ? (int)note(loop, fd, IO_READ, s, 0) : s;
}

ssize_t io_sendfile(io_loop *loop, int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length) {
	bool full = false;
	ssize_t r = io_platform_sendfile(fd, head, parts, file, offset, length, &full);
	return full ? io_exhausted(loop, fd, IO_WRITE, r) : r;
}

/* --- waiting --- */

/* Waits for events. Mechanisms report a batch at a time. While any descriptor is postponed, the further batches are
 * fetched, too, since their events may have to come before it. Returns 0, or -1 with errno. */
static int look(io_loop *loop, int64_t timeout_ns) {
	int result, before;
	do {
		before = loop->queue[IO_READ].length + loop->queue[IO_WRITE].length;
		result = loop->mechanism->wait(loop, timeout_ns);
		timeout_ns = 0;
	} while (result == 1 && loop->postpones && loop->queue[IO_READ].length + loop->queue[IO_WRITE].length > before);
	return result == -1 ? -1 : 0;
}

static int wait_until_ready(io_loop *loop, int64_t timeout_ns) {
	int64_t timer_ns = io_timer_limit(loop);
	if (timeout_ns < 0 || (timer_ns >= 0 && timer_ns < timeout_ns)) timeout_ns = timer_ns;
	if (io_queue_end_turn(loop)) timeout_ns = 0;
	if (loop->tasks && (timeout_ns < 0 || timeout_ns > IO_WAKE_LOST_NS)) timeout_ns = IO_WAKE_LOST_NS;
	const struct io_entry *wake = &loop->entry[loop->wake_read];
	/* io_uring may have reported the pipe already, and does not watch it then */
	if (wake->can & IO_CAN_READ || atomic_load_explicit(&loop->woken, memory_order_relaxed) != WOKEN_NOT)
		timeout_ns = 0;
	if (loop->alarms && timeout_ns) timeout_ns = io_alarm_limit(loop, timeout_ns);
	if (look(loop, timeout_ns) == -1) return -1;
	loop->postpones = loop->later[IO_READ].length || loop->later[IO_WRITE].length;
	loop->now_ns = io_read_clock();
	io_timer_advance(loop);
	loop->was_woken = wake->can & IO_CAN_READ || atomic_load(&loop->woken) != WOKEN_NOT;
	if (loop->was_woken) {
		io_wake_drain(loop);
		(void)watch_wake(loop); /* if this fails, it is tried again after the next wake */
		io_reader_collect(loop);
	}
	io_queue_begin_turn(loop);
	return 0;
}

bool io_woken(const io_loop *loop) { return loop->was_woken; }

int io_wait(io_loop *loop, int timeout_ms) {
	return wait_until_ready(loop, timeout_ms < 0 ? -1 : (int64_t)timeout_ms * IO_NS_PER_MS);
}

int io_waituntil(io_loop *loop, int64_t deadline_ns) {
	loop->now_ns = io_read_clock();
	return wait_until_ready(loop, deadline_ns > loop->now_ns ? deadline_ns - loop->now_ns : 0);
}
