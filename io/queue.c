/* queue.c - see queue.h. Every function is O(1) for each descriptor that is ready. */
#include "io/queue.h"

#include <stdlib.h>

enum { LATER_MINIMUM = 64 };

bool io_adopted(const io_loop *loop, int fd) { return fd >= 0 && fd < loop->bound && loop->entry[fd].cookie; }

bool io_queue_due(const struct io_entry *e, enum io_direction d) {
	return e->want & e->can & ~((unsigned)(e->reading && !e->meanwhile) << IO_WRITE) & 1U << d;
}

void io_queue_add(io_loop *loop, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	struct io_queue *q = &loop->queue[d];
	if (e->queued & 1 << d) return;
	e->queued |= (uint8_t)(1 << d);
	if (q->length++) loop->entry[q->tail].queue_next[d] = fd;
	else q->head = fd;
	q->tail = fd;
}

static int dequeue(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	int fd = q->head;
	q->head = loop->entry[fd].queue_next[d];
	q->length--;
	loop->entry[fd].queued &= (uint8_t) ~(1 << d);
	return fd;
}

/* Queues the descriptor that was handed out last for the next turn, if it is still ready. */
static void requeue_last(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	int last = q->last;
	q->last = -1;
	if (io_queue_due(&loop->entry[last], d)) io_queue_add(loop, last, d);
}

/* Returns the next descriptor of the current turn that is still due, or -1. */
static int take(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	if (q->last != -1) requeue_last(loop, d);
	while (q->turn > 0) {
		int fd = dequeue(loop, d);
		q->turn--;
		if (io_queue_due(&loop->entry[fd], d)) return q->last = fd;
	}
	return -1;
}

int io_canread(io_loop *loop) { return take(loop, IO_READ); }
int io_canwrite(io_loop *loop) { return take(loop, IO_WRITE); }

/* --- postponed descriptors --- */

/* Makes room for one more. Returns false without memory. */
static bool grow(struct io_later *l) {
	unsigned room = l->room ? 2 * l->room : LATER_MINIMUM;
	int *fd = malloc(room * sizeof *fd);
	if (!fd) return false;
	for (unsigned i = 0; i < l->length; i++) fd[i] = l->fd[(l->first + i) % l->room];
	free(l->fd);
	*l = (struct io_later){.fd = fd, .room = room, .length = l->length};
	return true;
}

static bool postpone(io_loop *loop, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	struct io_queue *q = &loop->queue[d];
	struct io_later *l = &loop->later[d];
	if (!(e->postponed & 1 << d)) { /* else it keeps its place */
		if ((!q->turn && !l->length) || (l->length == l->room && !grow(l))) return false;
		l->fd[(l->first + l->length++) % l->room] = fd;
		e->postponed |= (uint8_t)(1 << d);
	}
	q->last = -1;
	loop->postpones = true;
	return true;
}

bool io_postpone_read(io_loop *loop, int fd) { return postpone(loop, fd, IO_READ); }
bool io_postpone_write(io_loop *loop, int fd) { return postpone(loop, fd, IO_WRITE); }

/* Takes the first postponed descriptor. Returns it, or -1 if it is not due or has been closed. */
static int take_later(io_loop *loop, enum io_direction d) {
	struct io_later *l = &loop->later[d];
	int fd = l->fd[l->first];
	struct io_entry *e = &loop->entry[fd];
	bool due = e->postponed & 1 << d && io_queue_due(e, d);
	l->first = (l->first + 1) % l->room;
	l->length--;
	e->postponed &= (uint8_t) ~(1 << d);
	return due ? fd : -1;
}

static int take_postponed(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	if (!loop->later[d].length) return -1;
	if (q->last != -1) requeue_last(loop, d);
	while (loop->later[d].length) {
		int fd = take_later(loop, d);
		if (fd != -1) return q->last = fd;
	}
	return -1;
}

int io_postponed_read(io_loop *loop) { return take_postponed(loop, IO_READ); }
int io_postponed_write(io_loop *loop) { return take_postponed(loop, IO_WRITE); }

/* --- turns --- */

static bool end_turn(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	if (q->last != -1) requeue_last(loop, d);
	while (q->length && !io_queue_due(&loop->entry[q->head], d)) dequeue(loop, d);
	return q->length || loop->later[d].length;
}

bool io_queue_end_turn(io_loop *loop) {
	bool any = false;
	for (int d = 0; d < IO_DIRECTIONS; d++) any |= end_turn(loop, d);
	return any;
}

void io_queue_begin_turn(io_loop *loop) {
	for (int d = 0; d < IO_DIRECTIONS; d++) loop->queue[d].turn = loop->queue[d].length;
}

void io_ready(io_loop *loop, int fd, unsigned can) {
	if (!io_adopted(loop, fd)) return;
	struct io_entry *e = &loop->entry[fd];
	if (can & IO_HANGUP) {
		e->hangup = true;
		can |= IO_CAN_READ;
	}
	if (can & IO_CAN_READ && e->can & IO_CAN_READ) e->again = true;
	e->can |= can & (IO_CAN_READ | IO_CAN_WRITE);
	for (int d = 0; d < IO_DIRECTIONS; d++)
		if (can & 1U << d && io_queue_due(e, d)) io_queue_add(loop, fd, d);
}

bool io_unready(io_loop *loop, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	e->can &= (uint8_t) ~(1 << d);
	if (d == IO_READ) e->again = false;
	return e->want & 1 << d;
}
