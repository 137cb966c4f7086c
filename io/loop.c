/* loop.c - the loop itself: the table of descriptors, the queues of ready ones and io_wait().
 * All of it is O(ready): nothing here ever walks the open descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/mechanism.h"

enum { TABLE_MINIMUM = 64 };

const char *io_mechanism(void) { return io_mech_name(); }

static void clock_read(io_loop *loop) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	loop->now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t io_now(const io_loop *loop) { return loop->now_ns / NS_PER_MS; }
int64_t io_now_ns(const io_loop *loop) { return loop->now_ns; }

static int wake_pipe(io_loop *loop) {
	int end[2];
	if (pipe(end) == -1) return -1;
	loop->wake_read = end[0];
	loop->wake_write = end[1];
	for (int i = 0; i < 2; i++)
		if (fcntl(end[i], F_SETFL, O_NONBLOCK) == -1 || fcntl(end[i], F_SETFD, FD_CLOEXEC) == -1) return -1;
	if (io_fd(loop, end[0], loop) == -1) return -1;
	io_eagain_read(loop, end[0]); /* it is empty: no need to try */
	return io_wantread(loop, end[0]);
}

io_loop *io_loop_new(void) {
	io_loop *loop = calloc(1, sizeof *loop);
	if (!loop) return NULL;
	loop->wake_read = loop->wake_write = -1;
	loop->queue[IO_READ].last = loop->queue[IO_WRITE].last = -1;
	clock_read(loop);
	io_timer_init(loop);
	if (io_mech_init(loop) == -1 || wake_pipe(loop) == -1) {
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
	io_mech_free(loop);
	if (loop->wake_read != -1) close(loop->wake_read);
	if (loop->wake_write != -1) close(loop->wake_write);
	free(loop->entry);
	free(loop);
}

static int table_grow(io_loop *loop, int fd) {
	int size = loop->size ? loop->size : TABLE_MINIMUM;
	while (size <= fd) size *= 2;
	/* not realloc: fresh zero pages stay untouched until a descriptor needs them */
	struct io_entry *entry = calloc((size_t)size, sizeof *entry);
	if (!entry) return -1;
	if (loop->size) memcpy(entry, loop->entry, (size_t)loop->size * sizeof *entry);
	free(loop->entry);
	loop->entry = entry;
	loop->size = size;
	return 0;
}

static bool adopted(const io_loop *loop, int fd) { return fd >= 0 && fd < loop->bound && loop->entry[fd].cookie; }

int io_fd(io_loop *loop, int fd, void *cookie) {
	if (fd < 0 || adopted(loop, fd)) {
		errno = EBADF;
		return -1;
	}
	if (fd >= loop->size && table_grow(loop, fd) == -1) return -1;
	if (fd >= loop->bound) loop->bound = fd + 1;
	struct io_entry *e = &loop->entry[fd];
	/* queued_* and queue_next stay: the number's last owner may still be queued */
	e->cookie = cookie;
	e->can_read = e->can_write = true;
	e->want_read = e->want_write = false;
	e->again = e->hangup = e->reading = e->read = false;
	e->mech_index = 0;
	e->mech_state = 0;
	return 0;
}

void *io_cookie(const io_loop *loop, int fd) {
	return adopted(loop, fd) && fd != loop->wake_read ? loop->entry[fd].cookie : NULL;
}

int io_fd_bound(const io_loop *loop) { return loop->bound; }

void io_close(io_loop *loop, int fd) {
	io_mech_forget(loop, fd);
	io_timer_cancel(loop, fd);
	if (loop->entry[fd].reading) io_read_forget(loop->reader, fd);
	loop->entry[fd].reading = false;
	loop->entry[fd].cookie = NULL;
	loop->entry[fd].want_read = loop->entry[fd].want_write = false;
	close(fd);
}

static bool due(const struct io_entry *e, enum io_direction d) {
	return d == IO_READ ? e->want_read && e->can_read : e->want_write && e->can_write && !e->reading;
}

static bool queued(const struct io_entry *e, enum io_direction d) {
	return d == IO_READ ? e->queued_read : e->queued_write;
}

static void set_queued(struct io_entry *e, enum io_direction d, bool value) {
	if (d == IO_READ) e->queued_read = value;
	else e->queued_write = value;
}

static void enqueue(io_loop *loop, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	struct io_queue *q = &loop->queue[d];
	if (queued(e, d)) return;
	set_queued(e, d, true);
	if (q->length++) loop->entry[q->tail].queue_next[d] = fd;
	else q->head = fd;
	q->tail = fd;
}

static int dequeue(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	int fd = q->head;
	q->head = loop->entry[fd].queue_next[d];
	q->length--;
	set_queued(&loop->entry[fd], d, false);
	return fd;
}

/* What was handed out last and is still ready comes back in the next turn. */
static void requeue_last(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	if (q->last != -1 && due(&loop->entry[q->last], d)) enqueue(loop, q->last, d);
	q->last = -1;
}

static int hand_out(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	requeue_last(loop, d);
	while (q->turn > 0) {
		int fd = dequeue(loop, d);
		q->turn--;
		if (due(&loop->entry[fd], d)) return q->last = fd;
	}
	return -1;
}

/* Only what is still to be handed out keeps io_wait() from waiting. */
static void drop_stale(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	while (q->length && !due(&loop->entry[q->head], d)) dequeue(loop, d);
}

int io_canread(io_loop *loop) { return hand_out(loop, IO_READ); }
int io_canwrite(io_loop *loop) { return hand_out(loop, IO_WRITE); }

void io_ready(io_loop *loop, int fd, unsigned can) {
	if (!adopted(loop, fd)) return;
	struct io_entry *e = &loop->entry[fd];
	if (can & IO_HANGUP) {
		e->hangup = true;
		can |= IO_CAN_READ;
	}
	if (can & IO_CAN_READ) {
		if (e->can_read) e->again = true;
		e->can_read = true;
		if (e->want_read) enqueue(loop, fd, IO_READ);
	}
	if (can & IO_CAN_WRITE) {
		e->can_write = true;
		if (due(e, IO_WRITE)) enqueue(loop, fd, IO_WRITE);
	}
}

bool io_reading(const io_loop *loop, int fd) { return loop->entry[fd].reading; }

void io_has_read(io_loop *loop, int fd) {
	struct io_entry *e = &loop->entry[fd];
	if (!e->reading) return;
	e->reading = false;
	e->read = true;
	if (due(e, IO_WRITE)) enqueue(loop, fd, IO_WRITE);
}

int io_not_ready(io_loop *loop, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	if (d == IO_READ) e->can_read = e->again = false;
	else e->can_write = false;
	return (d == IO_READ ? e->want_read : e->want_write) ? io_mech_watch(loop, fd, d) : 0;
}

int io_eagain_read(io_loop *loop, int fd) { return io_not_ready(loop, fd, IO_READ); }
int io_eagain_write(io_loop *loop, int fd) { return io_not_ready(loop, fd, IO_WRITE); }

int io_wantread(io_loop *loop, int fd) {
	struct io_entry *e = &loop->entry[fd];
	if (e->want_read) return 0;
	e->want_read = true;
	if (!e->can_read) return io_mech_watch(loop, fd, IO_READ);
	enqueue(loop, fd, IO_READ);
	return 0;
}

int io_wantwrite(io_loop *loop, int fd) {
	struct io_entry *e = &loop->entry[fd];
	if (e->want_write) return 0;
	e->want_write = true;
	if (!e->can_write) return io_mech_watch(loop, fd, IO_WRITE);
	enqueue(loop, fd, IO_WRITE);
	return 0;
}

void io_dontwantread(io_loop *loop, int fd) { loop->entry[fd].want_read = false; }
void io_dontwantwrite(io_loop *loop, int fd) { loop->entry[fd].want_write = false; }

static void wake_drain(io_loop *loop) {
	char buffer[8];
	while (read(loop->wake_read, buffer, sizeof buffer) > 0) {}
	/* Last: what is written from here on stays in the pipe. Who wakes before has been heard: we are awake. The exchange
	 * makes us see what that thread did before it woke us. */
	(void)atomic_exchange(&loop->woken, false);
	io_eagain_read(loop, loop->wake_read);
}

static int wait_for(io_loop *loop, int64_t timeout_ns) {
	int64_t timer_ns = io_timer_limit(loop);
	if (timeout_ns < 0 || (timer_ns >= 0 && timer_ns < timeout_ns)) timeout_ns = timer_ns;
	for (int d = 0; d < IO_DIRECTIONS; d++) {
		requeue_last(loop, d);
		drop_stale(loop, d);
		if (loop->queue[d].length) timeout_ns = 0;
	}
	int result = io_mech_wait(loop, timeout_ns);
	clock_read(loop);
	io_timer_advance(loop);
	if (loop->entry[loop->wake_read].can_read) {
		wake_drain(loop);
		if (loop->reader) io_reader_collect(loop->reader);
	}
	for (int d = 0; d < IO_DIRECTIONS; d++) loop->queue[d].turn = loop->queue[d].length;
	return result;
}

int io_wait(io_loop *loop, int timeout_ms) {
	return wait_for(loop, timeout_ms < 0 ? -1 : (int64_t)timeout_ms * NS_PER_MS);
}

int io_waituntil(io_loop *loop, int64_t deadline_ns) {
	clock_read(loop);
	return wait_for(loop, deadline_ns > loop->now_ns ? deadline_ns - loop->now_ns : 0);
}

void io_wake(io_loop *loop) {
	int error = errno;
	if (!atomic_exchange(&loop->woken, true) && write(loop->wake_write, "", 1) == -1) errno = error;
}
