/* queue.c - see queue.h. All of it is O(1) for each descriptor that is ready. */
#include "io/queue.h"

static void enqueue(io_loop *loop, struct io_queue *q, int fd, enum io_direction d) {
	struct io_entry *e = &loop->entry[fd];
	if (e->queued & 1 << d) return;
	e->queued |= (uint8_t)(1 << d);
	if (q->length++) loop->entry[q->tail].queue_next[d] = fd;
	else q->head = fd;
	q->tail = fd;
}

void io_queue_add(io_loop *loop, int fd, enum io_direction d) { enqueue(loop, &loop->queue[d], fd, d); }

static int dequeue(io_loop *loop, struct io_queue *q, enum io_direction d) {
	int fd = q->head;
	q->head = loop->entry[fd].queue_next[d];
	q->length--;
	loop->entry[fd].queued &= (uint8_t) ~(1 << d);
	return fd;
}

/* Queues what was handed out last again, if it is still ready, for the next turn. */
static void requeue_last(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	int last = q->last;
	q->last = -1;
	if (io_queue_due(&loop->entry[last], d)) io_queue_add(loop, last, d);
}

int io_queue_take(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d];
	if (q->last != -1) requeue_last(loop, d);
	while (q->turn > 0) {
		int fd = dequeue(loop, q, d);
		q->turn--;
		if (io_queue_due(&loop->entry[fd], d)) return q->last = fd;
	}
	return -1;
}

bool io_queue_postpone(io_loop *loop, int fd, enum io_direction d) {
	struct io_queue *q = &loop->queue[d], *later = &loop->postponed[d];
	if (!q->turn && !later->length) return false;
	q->last = -1;
	loop->postpones = true;
	enqueue(loop, later, fd, d);
	return true;
}

int io_queue_take_postponed(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d], *later = &loop->postponed[d];
	if (!later->length) return -1;
	if (q->last != -1) requeue_last(loop, d);
	while (later->length) {
		int fd = dequeue(loop, later, d);
		if (io_queue_due(&loop->entry[fd], d)) return q->last = fd;
	}
	return -1;
}

/* Drops those at the front that are not due any more. Returns whether there are others. */
static bool has_due(io_loop *loop, struct io_queue *q, enum io_direction d) {
	while (q->length && !io_queue_due(&loop->entry[q->head], d)) dequeue(loop, q, d);
	return q->length;
}

bool io_queue_end_turn(io_loop *loop, enum io_direction d) {
	struct io_queue *q = &loop->queue[d], *later = &loop->postponed[d];
	if (q->last != -1) requeue_last(loop, d);
	bool due = has_due(loop, q, d);
	return (later->length && has_due(loop, later, d)) || due;
}

void io_queue_begin_turn(io_loop *loop, enum io_direction d) { loop->queue[d].turn = loop->queue[d].length; }

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
