/* loop.c - the loop: the table of descriptors and io_wait(). Its cost is O(ready): it never walks the open descriptors.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/queue.h"
#include "io/reader.h"

enum { TABLE_MINIMUM = 64 };

const char *io_mechanism(void) { return io_default->name(); }

int64_t io_now(const io_loop *loop) { return io_clock_ms(loop); }
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
	return io_adopted(loop, fd) && fd != loop->wake_read ? loop->entry[fd].cookie : NULL;
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

int io_canread(io_loop *loop) { return io_queue_take(loop, IO_READ); }
int io_canwrite(io_loop *loop) { return io_queue_take(loop, IO_WRITE); }

bool io_postpone_read(io_loop *loop, int fd) { return io_queue_postpone(loop, fd, IO_READ); }
bool io_postpone_write(io_loop *loop, int fd) { return io_queue_postpone(loop, fd, IO_WRITE); }
int io_postponed_read(io_loop *loop) { return io_queue_take_postponed(loop, IO_READ); }
int io_postponed_write(io_loop *loop) { return io_queue_take_postponed(loop, IO_WRITE); }

bool io_reading(const io_loop *loop, int fd) { return loop->entry[fd].reading; }

void io_write_meanwhile(io_loop *loop, int fd, bool meanwhile) {
	struct io_entry *e = &loop->entry[fd];
	e->meanwhile = meanwhile;
	if (e->reading && io_queue_due(e, IO_WRITE)) io_queue_add(loop, fd, IO_WRITE);
}

int io_not_ready(io_loop *loop, int fd, enum io_direction d) {
	return io_unready(loop, fd, d) ? loop->mechanism->watch(loop, fd, d) : 0;
}

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
	for (int d = 0; d < IO_DIRECTIONS; d++)
		if (io_queue_end_turn(loop, d)) timeout_ns = 0;
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
	for (int d = 0; d < IO_DIRECTIONS; d++) io_queue_begin_turn(loop, d);
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
