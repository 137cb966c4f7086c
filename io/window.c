/* window.c - see window.h. */
#include "io/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/at_once.h"
#include "io/internal.h"
#include "io/queue.h"

struct io_window {
	struct io_task task;
	io_loop *loop;
	int fd, file;
	bool under_way, abandoned;
	off_t offset, end; /* what is read, and where the file ends */
	size_t size;
	ssize_t got; /* bytes that were read, or -1 */
	int error;
	struct stat st;
	char bytes[];
};

static void run(struct io_task *task, const atomic_bool *stop) {
	struct io_window *w = (struct io_window *)task;
	(void)stop;
	io_read_begins();
	const off_t next = w->offset + (off_t)w->size, ahead = w->end - next;
	io_start_reading(w->file, w->offset, (off_t)w->size + (ahead < IO_WINDOW_AHEAD ? ahead : IO_WINDOW_AHEAD));
	w->got = pread(w->file, w->bytes, w->size, w->offset);
	if (w->got == -1 || fstat(w->file, &w->st) == -1) {
		w->error = errno;
		w->got = -1;
	}
	io_read_ends();
}

static void release(struct io_window *w) {
	w->loop->window_bytes -= w->size;
	free(w);
}

size_t io_window_memory(const struct io_window *w) { return sizeof *w + w->size; }

/* Has a thread read the bytes. Returns -1, with EAGAIN or ENOMEM. */
static ssize_t start(io_loop *loop, io_tasks *readers, struct io_window **window, const struct io_window_read *r) {
	size_t size = loop->window_bytes + IO_WINDOW > IO_WINDOWS_MANY ? IO_WINDOW_LEAST : IO_WINDOW;
	if (loop->window_bytes > IO_WINDOWS_MOST) size = IO_WINDOW_TINY;
	if (size > r->length) size = (size_t)r->length;
	struct io_window *w = malloc(sizeof *w + size);
	errno = ENOMEM;
	if (!w) return -1;
	*w = (struct io_window){.task = {.run = run},
							.loop = loop,
							.fd = r->fd,
							.file = r->file,
							.under_way = true,
							.offset = r->offset,
							.end = r->offset + (off_t)r->length,
							.size = size};
	if (!readers || !io_tasks_add(readers, &w->task)) {
		free(w);
		errno = ENOMEM;
		return -1;
	}
	loop->window_bytes += size;
	loop->entry[r->fd].reading = true;
	*window = w;
	errno = EAGAIN;
	return -1;
}

ssize_t io_window_read(io_loop *loop, io_tasks *readers, struct io_window **window, const struct io_window_read *r,
					   void *buffer, struct stat *now) {
	struct io_window *w = *window;
	if (w && w->under_way) {
		loop->entry[r->fd].reading = true;
		errno = EAGAIN;
		return -1;
	}
	if (w && w->got == -1) {
		errno = w->error == EAGAIN ? EIO : w->error;
		return -1;
	}
	if (w && w->got == 0) return 0;
	if (!w || r->offset < w->offset || r->offset >= w->offset + w->got) {
		if (w) release(w);
		*window = NULL;
		return start(loop, readers, window, r);
	}
	const size_t left = (size_t)(w->offset + w->got - r->offset), n = r->now < left ? r->now : left;
	memcpy(buffer, w->bytes + (r->offset - w->offset), n);
	*now = w->st;
	return (ssize_t)n;
}

/* Lets fd be handed out again. */
static void tell(const struct io_window *w) {
	struct io_entry *e = &w->loop->entry[w->fd];
	e->reading = false;
	if (io_queue_due(e, IO_WRITE)) io_queue_add(w->loop, w->fd, IO_WRITE);
}

void io_window_free(struct io_window *w) {
	if (!w) return;
	if (w->under_way) tell(w); /* it waits for nothing else, or that is asked for again */
	if (w->under_way) w->abandoned = true;
	else release(w);
}

void io_windows_collect(io_tasks *readers) {
	for (struct io_task *task; (task = io_tasks_done(readers));) {
		struct io_window *w = (struct io_window *)task;
		w->under_way = false;
		if (!task->pending && !w->abandoned) tell(w);
		if (w->abandoned) release(w);
	}
}
