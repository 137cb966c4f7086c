/* reader.c - see reader.h. The thread reads one window of megabytes at a time, so that competing downloads read the
 * disk in long runs. When a descriptor is handed out after its read, its file is tested again, so that a false report
 * does no harm, not even to another owner of the number. */
#include "io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/at_once.h"
#include "io/queue.h"
#include "io/task.h"

enum {
	CLOSED = -1,          /* fd of a read whose descriptor has been closed */
	PIECE = 128 * 1024,   /* bytes that the thread copies at a time, */
	PIPE = 1024 * 1024,   /* or that it waits for without copying them */
	READER_NICE = 19,     /* the thread gets the time that the loops do not use */
	BOUNDARY = 64 * 1024, /* windows end at multiples, which are those of any page size: they share no page */
	LOOK_NS = 10000,      /* testing a byte in memory takes less, unless the thread is interrupted, */
	LOOKS_MAX = 3,        /* as happens twice in a million tests on a busy machine */
	TABLE_MINIMUM = 64
};

struct io_read {
	struct io_task task;
	struct io_reader *reader;
	int fd, file;
	off_t offset, end;
};

struct io_reader {
	io_tasks *tasks;
	struct io_read_slot {     /* of a descriptor */
		struct io_read *read; /* the one under way, or NULL */
		int file;             /* of it, or of the last one, */
		off_t offset, end;    /* and its window; fd waits for the part from offset on; end 0: no window */
		off_t begin;          /* where the first of the windows began that this one continues */
	} * slot;
	int size;          /* of the table of slots */
	char piece[PIECE]; /* of the thread */
};

/* Returns whether a read of length bytes took longer than copying them from memory at 1 GB/s. The kernel starts to read
 * bytes that are not in memory, and a fast disk may deliver them before the call returns. */
static bool came_from_disk(int64_t begun_ns, size_t length) {
	return io_read_clock() - begun_ns > LOOK_NS + (int64_t)length;
}

#ifdef __linux__

/* Returns whether a byte is in memory, perhaps only since this call. preadv2(2) takes 0.12 us. cachestat(2) takes 3 us
 * for 2 MB and, like mincore(2), tells the truth only to users who may write the file. */
static bool look(int file, off_t offset) {
	char byte;
	return io_pread_at_once(file, &byte, 1, offset) != -1 || errno != EAGAIN;
}

/* Returns whether a byte was in memory before this call. A test that takes long may have been interrupted: then bytes
 * nearer to `other` are tested. */
static bool in_memory(int file, off_t offset, off_t other) {
	for (int i = 0; i < LOOKS_MAX; i++) {
		const int64_t begun_ns = io_read_clock();
		if (!look(file, offset)) return false;
		if (!came_from_disk(begun_ns, 1)) return true;
		offset += (other - offset) / 2;
	}
	return false;
}

/* Waits until bytes of a file are in memory: their pages go into a pipe, which is then thrown away. Returns how many
 * these are, or -1, as on a full server, which has no descriptors for a pipe. */
static ssize_t await_in_pipe(int file, off_t offset, size_t length) {
	int end[2];
	if (pipe2(end, O_NONBLOCK | O_CLOEXEC) == -1) return -1;
	(void)fcntl(end[1], F_SETPIPE_SZ, PIPE); /* without that it has 64 KB, or less: pipe(7) */
	ssize_t n = splice(file, &offset, end[1], NULL, length, 0);
	close(end[0]);
	close(end[1]);
	return n;
}

/* Starts to read the whole window, then waits for it. With copies, that takes twice as long. */
static void run_read(struct io_task *task, const atomic_bool *stop) {
	const struct io_read *r = (struct io_read *)task;
	(void)stop;
	io_read_begins();
	io_start_reading(r->file, r->offset, r->end - r->offset);
	ssize_t n = 1;
	for (off_t at = r->offset; at < r->end && n > 0; at += n) {
		const size_t left = (size_t)(r->end - at);
		n = await_in_pipe(r->file, at, left);
		if (n == -1) n = pread(r->file, r->reader->piece, left < PIECE ? left : PIECE, at);
	}
	io_read_ends();
}

#else /* no call tells what is in memory: all files count as in memory, and the loop waits for the disk */

static bool look(int file, off_t offset) {
	(void)file, (void)offset;
	return true;
}

static bool in_memory(int file, off_t offset, off_t other) {
	(void)other;
	return look(file, offset);
}

static void run_read(struct io_task *task, const atomic_bool *stop) { (void)task, (void)stop; }

#endif

static struct io_reader *reader_new(io_loop *loop) {
	struct io_reader *reader = calloc(1, sizeof *reader);
	if (reader && (reader->tasks = io_tasks_new(loop, READER_NICE, 1))) return reader;
	free(reader);
	return NULL;
}

/* Makes room for a descriptor in the table. Returns false without memory. */
static bool table_grow(struct io_reader *reader, int fd) {
	int size = reader->size ? reader->size : TABLE_MINIMUM;
	if (fd < reader->size) return true;
	while (size <= fd) size *= 2;
	struct io_read_slot *slot = realloc(reader->slot, (size_t)size * sizeof *slot);
	if (!slot) return false;
	for (int i = reader->size; i < size; i++) slot[i] = (struct io_read_slot){0};
	reader->slot = slot;
	reader->size = size;
	return true;
}

/* Adds a read of a window for fd. Returns false if the thread cannot do it. */
static bool start(io_loop *loop, int fd, int file, off_t offset, uint64_t length) {
	if (!loop->reader) loop->reader = reader_new(loop);
	struct io_reader *reader = loop->reader;
	struct io_read *r = reader && table_grow(reader, fd) ? malloc(sizeof *r) : NULL;
	if (!r) return false;
	off_t end = offset + (off_t)length;
	if (length > IO_READ_WINDOW) end = (offset + IO_READ_WINDOW) / BOUNDARY * BOUNDARY;
	*r = (struct io_read){
		.task = {.run = run_read}, .reader = reader, .fd = fd, .file = file, .offset = offset, .end = end};
	if (!io_tasks_add(reader->tasks, &r->task)) {
		free(r);
		return false;
	}
	struct io_read_slot *slot = &reader->slot[fd];
	const off_t begin = slot->file == file && slot->end == offset ? slot->begin : offset;
	*slot = (struct io_read_slot){.read = r, .file = file, .offset = offset, .end = end, .begin = begin};
	loop->entry[fd].read = false;
	return true;
}

/* Returns the slot of the descriptor, or NULL if nothing was ever read for it. */
static struct io_read_slot *slot_of(const io_loop *loop, int fd) {
	return loop->reader && fd < loop->reader->size ? &loop->reader->slot[fd] : NULL;
}

/* Makes fd wait for the read that covers all `now` bytes, or adds one. A read for fd that does not cover them is
 * withdrawn, unless it has begun: then fd waits for that one, and its file is tested again. Returns false if there is
 * nothing to wait for. */
static bool await(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length) {
	struct io_read_slot *slot = slot_of(loop, fd);
	struct io_read *r = slot ? slot->read : NULL;
	bool covers = r && slot->file == file && slot->offset <= offset && offset + (off_t)now <= slot->end;
	if (covers) slot->offset = offset;
	if (r && !covers && io_tasks_withdraw(loop->reader->tasks, &r->task)) {
		slot->end = r->offset;
		free(r);
		r = slot->read = NULL;
	}
	if (!r && !start(loop, fd, file, offset, length)) return false;
	loop->entry[fd].reading = true;
	return true;
}

/* Returns whether any of the `now` bytes from offset on is in the read that is under way for fd. The loop does not then
 * read those bytes itself. */
static bool under_way(const io_loop *loop, int fd, int file, off_t offset, uint64_t now) {
	const struct io_read_slot *slot = slot_of(loop, fd);
	return slot && slot->read && slot->file == file && offset < slot->end && offset + (off_t)now > slot->read->offset;
}

/* Returns whether the thread has read all these bytes for fd. */
static bool was_read(const io_loop *loop, int fd, int file, off_t offset, uint64_t now) {
	const struct io_read_slot *slot = slot_of(loop, fd);
	if (!slot || !slot->end || slot->file != file) return false;
	return slot->begin <= offset && offset + (off_t)now <= (slot->read ? slot->read->offset : slot->end);
}

/* Returns whether the first and the last of these bytes are in memory; at offset 0 only the last one is tested. Bytes
 * that the thread has read need not have been there before the test: on some systems every test may take long. */
static bool ends_in_memory(const io_loop *loop, int fd, int file, off_t offset, uint64_t now) {
	const off_t last = offset + (off_t)now - 1;
	if (was_read(loop, fd, file, offset, now)) return look(file, last) && (offset == 0 || look(file, offset));
	return in_memory(file, last, offset) && (offset == 0 || in_memory(file, offset, last));
}

/* Called when the first `now` of the length bytes from offset on are in memory. If less than half of the last window is
 * left behind them, starts to read the next one. */
static void read_ahead(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length) {
	struct io_read_slot *slot = slot_of(loop, fd);
	if (!slot || !slot->end || slot->read || slot->file != file) return;
	const off_t sent = offset + (off_t)now, end = slot->end, rest = offset + (off_t)length - end;
	if (sent > end || end - sent > IO_READ_WINDOW / 2 || rest <= 0) return;
	if (in_memory(file, end, end + rest) || !start(loop, fd, file, end, (uint64_t)rest)) slot->end = 0;
}

static bool is_of(const io_loop *loop, int fd, int file, off_t offset) {
	const struct io_read_slot *slot = slot_of(loop, fd);
	return slot && slot->file == file && slot->offset == offset;
}

/* Returns whether fd has waited for a read at this offset that is done, and forgets it. */
static bool has_read(io_loop *loop, int fd, int file, off_t offset) {
	struct io_entry *e = &loop->entry[fd];
	if (!e->read || !is_of(loop, fd, file, offset)) return false;
	e->read = false;
	return true;
}

bool io_in_memory(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length) {
	if (loop->entry[fd].reading) return false;
	if (!has_read(loop, fd, file, offset) &&
		(under_way(loop, fd, file, offset, now) || !ends_in_memory(loop, fd, file, offset, now)))
		return !await(loop, fd, file, offset, now, length);
	read_ahead(loop, fd, file, offset, now, length);
	return true;
}

/* Reads the bytes that are in memory. If they came from a fast disk, the thread reads those behind them. */
static ssize_t read_at_once(io_loop *loop, int fd, int file, off_t offset, void *buffer, size_t now, uint64_t length) {
	const int64_t begun_ns = io_read_clock();
	const ssize_t n = io_pread_at_once(file, buffer, now, offset);
	if (n <= 0) return n;
	const bool quick = !came_from_disk(begun_ns, (size_t)n) || was_read(loop, fd, file, offset, (uint64_t)n);
	const off_t next = offset + n, rest = (off_t)length - n;
	const struct io_read_slot *slot = slot_of(loop, fd);
	if (quick || !rest || in_memory(file, next, next + rest)) read_ahead(loop, fd, file, offset, (uint64_t)n, length);
	else if (!slot || !slot->read) (void)start(loop, fd, file, next, (uint64_t)rest);
	return n;
}

ssize_t io_read_file(io_loop *loop, int fd, int file, off_t offset, void *buffer, size_t now, uint64_t length) {
	const bool reading = loop->entry[fd].reading;
	ssize_t n;
	errno = EAGAIN;
	if (reading && is_of(loop, fd, file, offset)) return -1;
	if (!has_read(loop, fd, file, offset)) {
		n = -1;
		if (!under_way(loop, fd, file, offset, 1)) n = read_at_once(loop, fd, file, offset, buffer, now, length);
		if (n != -1 || (errno != EAGAIN && errno != EINTR)) return n;
		if (reading || await(loop, fd, file, offset, now, length)) {
			errno = EAGAIN;
			return -1;
		}
	}
	do n = pread(file, buffer, now, offset);
	while (n == -1 && errno == EINTR);
	return n;
}

void io_reader_forget(io_loop *loop, int fd) {
	struct io_read_slot *slot = slot_of(loop, fd);
	if (!slot) return;
	struct io_read *r = slot->read;
	loop->entry[fd].reading = false;
	*slot = (struct io_read_slot){0};
	if (!r) return;
	r->fd = CLOSED;
	if (io_tasks_withdraw(loop->reader->tasks, &r->task)) free(r);
}

void io_reader_collect(io_loop *loop) {
	struct io_reader *reader = loop->reader;
	for (struct io_task *task; reader && (task = io_tasks_done(reader->tasks));) {
		struct io_read *r = (struct io_read *)task;
		struct io_entry *e = r->fd != CLOSED ? &loop->entry[r->fd] : NULL;
		if (e) reader->slot[r->fd].read = NULL;
		if (e && e->reading) {
			e->reading = false;
			e->read = true;
			if (io_queue_due(e, IO_WRITE)) io_queue_add(loop, r->fd, IO_WRITE);
		}
		free(r);
	}
}

void io_reader_free(struct io_reader *reader) {
	if (!reader) return;
	(void)io_tasks_stop(reader->tasks, -1);
	for (struct io_task *task; (task = io_tasks_done(reader->tasks));) free(task);
	io_tasks_free(reader->tasks);
	free(reader->slot);
	free(reader);
}
