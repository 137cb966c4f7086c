/* internal.h - the loop as the files of io/ see it. Internal to io/.
 *
 * The files stand on each other in this order, and call downwards alone: iob, relay, transfer, loop, the mechanisms,
 * reader, task, wake, timer and queue. */
#ifndef GATLING_IO_INTERNAL_H
#define GATLING_IO_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"

#ifdef MSG_MORE
enum { IO_MSG_MORE = MSG_MORE };
#else
enum { IO_MSG_MORE = 0 };
#endif

enum { IO_NS_PER_MS = 1000000, IO_NS_PER_S = 1000000000 };

/* While tasks are under way a wait takes no longer: what they report is found even if its wake is lost. */
enum { IO_WAKE_LOST_NS = IO_NS_PER_S };

enum io_direction { IO_READ = 0, IO_WRITE = 1, IO_DIRECTIONS = 2 };

/* What io_ready() is told; a set. IO_HANGUP: the peer is gone or done, reading will say so. */
enum { IO_CAN_READ = 1 << IO_READ, IO_CAN_WRITE = 1 << IO_WRITE, IO_HANGUP = 4 };

enum {
	IO_WHEEL_SLOTS = 256,                  /* of IO_TICK_MS each; a later deadline goes round again */
	IO_WHEEL_WORDS = IO_WHEEL_SLOTS / 64,  /* of the bit map of slots in use */
	IO_SLOT_NONE = 0,                      /* timer_slot of an entry in no list; slot n is stored as n + 1 */
	IO_SLOT_TIMED_OUT = IO_WHEEL_SLOTS + 1 /* in the list that io_timedout() empties */
};

/* WOKEN_SENT: a byte is in the pipe, or about to be. WOKEN_LOST: it could not be written. */
enum io_woken { WOKEN_NOT, WOKEN_SENT, WOKEN_LOST };

/* One adopted descriptor. All zero is a valid, unused entry, so that a fresh table costs no memory
 * before it is touched. 40 bytes: an idle connection pays for one. */
struct io_entry {
	void *cookie; /* NULL: not adopted */
	int64_t deadline_ms;
	int32_t timer_next, timer_prev;
	int32_t queue_next[IO_DIRECTIONS];
	int32_t mech_index; /* the mechanism's own */
	uint16_t timer_slot : 10;
	uint16_t mech_state : 6;                              /* the mechanism's own */
	uint8_t can : 2, want : 2, queued : 2, postponed : 2; /* sets of 1 << direction */
	bool again : 1;     /* an event came while it was readable: a short read does not prove that it is drained */
	bool reading : 1;   /* the file that is to be sent: not ready for writing, */
	bool meanwhile : 1; /* except for io_write_meanwhile() */
	bool read : 1;      /* the read that it waited for is done, and has not been asked for since */
	bool listens : 1;   /* io_accept() was called: others may have the socket, too, and then it outlives close(2) */
	bool hangup : 1;    /* end of file or an error waits behind the data: a short read never proves it */
};

/* Descriptors to hand out, first in, first out; linked through queue_next. */
struct io_queue {
	int head, tail;
	int length;
	int turn; /* how many of them belong to the current turn */
	int last; /* the one handed out last, -1 if none: it may have to come back */
};

/* Those that were postponed, first in, first out: a ring. One whose entry says that it is not postponed is left over:
 * it was closed. */
struct io_later {
	int *fd; /* room, a power of two */
	unsigned room, first, length;
};

struct io_loop {
	struct io_entry *entry;
	int size;  /* of the table */
	int bound; /* see io_fd_bound() */
	struct io_queue queue[IO_DIRECTIONS];
	struct io_later later[IO_DIRECTIONS];
	bool postpones; /* some were postponed in this turn, or are */
	int64_t now_ns;
	int64_t tick;      /* the last tick whose slot has been emptied */
	int64_t next_tick; /* of the first slot in use after it, unless that has been emptied since */
	uint64_t slots_used[IO_WHEEL_WORDS];
	int32_t slot[IO_WHEEL_SLOTS + 1]; /* heads of the lists; the last one is of those timed out */
	int wake_read, wake_write;        /* a pipe */
	int relay_read, relay_write;      /* a pipe, see relay.c; -1: none yet */
	_Atomic enum io_woken woken;      /* what io_wake() has done since the loop looked last */
	bool was_woken;                   /* see io_woken() */
	unsigned tasks;                   /* added (io/task.h) and not handed back: a thread will wake the loop */
	struct io_reader *reader;         /* NULL as long as all files were in memory */
	const struct io_mechanism *mechanism;
	void *mech;             /* the mechanism's own */
	char piece[128 * 1024]; /* iob.c copies through it */
};

static inline int64_t io_clock_ms(const io_loop *loop) { return loop->now_ns / IO_NS_PER_MS; }

#endif
