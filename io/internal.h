/* internal.h - the loop as the files of io/ see it. Internal to io/.
 *
 * A file calls only those behind it in this list: iob, datagram, splice, loop, sendfile, the mechanisms, reader, task,
 * wake, alarm, timer, queue; iob calls window, which calls task and queue. descriptors.c stands alone. */
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

/* While tasks are under way, no wait takes longer than this, so that their end is noticed even if the wake is lost. */
enum { IO_WAKE_LOST_NS = IO_NS_PER_S };

enum io_direction { IO_READ = 0, IO_WRITE = 1, IO_DIRECTIONS = 2 };

/* For io_ready(): a set. IO_HANGUP: the peer has closed its end; reading returns the rest, then the end or an error. */
enum { IO_CAN_READ = 1 << IO_READ, IO_CAN_WRITE = 1 << IO_WRITE, IO_HANGUP = 4 };

enum {
	IO_WHEEL_SLOTS = 256,                  /* of IO_TICK_MS each; a later deadline takes several rounds */
	IO_WHEEL_WORDS = IO_WHEEL_SLOTS / 64,  /* of the bit map of slots in use */
	IO_SLOT_NONE = 0,                      /* timer_slot of an entry in no list; slot n is stored as n + 1 */
	IO_SLOT_TIMED_OUT = IO_WHEEL_SLOTS + 1 /* timer_slot of an entry in the list that io_timedout() empties */
};

/* WOKEN_SENT: a byte is in the pipe, or is just being written. WOKEN_LOST: writing it failed. */
enum io_woken { WOKEN_NOT, WOKEN_SENT, WOKEN_LOST };

/* Whether the system can send several datagrams in a call. */
enum io_segments { SEGMENTS_UNKNOWN, SEGMENTS_SENT, SEGMENTS_NONE };

/* An adopted descriptor. An entry of zeros is valid and unused, so that a new table takes no memory before it is
 * written to. An idle connection takes one entry: 40 bytes. */
struct io_entry {
	void *cookie; /* NULL: not adopted */
	int64_t deadline_ms;
	int32_t timer_next, timer_prev;
	int32_t queue_next[IO_DIRECTIONS];
	int32_t mech_index; /* the mechanism's own */
	uint16_t timer_slot : 10;
	uint16_t mech_state : 6;                              /* the mechanism's own */
	uint8_t can : 2, want : 2, queued : 2, postponed : 2; /* sets of 1 << direction */
	bool again : 1;     /* an event came while it was readable: a short read does not prove that it is empty */
	bool reading : 1;   /* a part of a file is read for it: it is not ready for writing, */
	bool meanwhile : 1; /* unless io_write_meanwhile() says so */
	bool read : 1;      /* the part that it waited for has been read, and not been asked for since */
	bool shared : 1; /* io_accept() or io_receive() was called: others may have the socket, which outlives close(2) */
	bool hangup : 1; /* end of file or an error is behind the data: no read proves that it is empty */
};

/* The descriptors to be handed out, first in, first out, linked by queue_next. */
struct io_queue {
	int head, tail;
	int length;
	int turn; /* how many of them are of the current turn */
	int last; /* the one handed out last, or -1: it is queued again if it is still ready */
};

/* The postponed descriptors, first in, first out, in a ring. One whose entry is not marked as postponed has been closed
 * meanwhile. */
struct io_later {
	int *fd; /* room, a power of two */
	unsigned room, first, length;
};

/* An alarm, and the time under which alarm.c has filed it: its deadline, or an earlier time. */
struct io_filed {
	int64_t at_ns;
	struct io_alarm *alarm;
};

struct io_loop {
	struct io_entry *entry;
	int size;  /* of the table */
	int bound; /* see io_fd_bound() */
	struct io_queue queue[IO_DIRECTIONS];
	struct io_later later[IO_DIRECTIONS];
	bool postpones; /* descriptors are postponed, or were in this turn */
	int64_t now_ns;
	int64_t tick;      /* the last tick whose slot has been emptied */
	int64_t next_tick; /* of the next slot in use, which may have been emptied since */
	uint64_t slots_used[IO_WHEEL_WORDS];
	int32_t slot[IO_WHEEL_SLOTS + 1]; /* heads of the lists; the last list is that of io_timedout() */
	struct io_filed *alarm;           /* a heap, see alarm.c */
	unsigned alarms, alarm_room;      /* how many there are, and places of the heap; place 0 is not used */
	int wake_read, wake_write;        /* a pipe */
	int splice_read, splice_write;    /* a pipe, see splice.c; -1: none yet */
	enum io_segments segments;        /* see datagram.c */
	_Atomic enum io_woken woken;      /* what io_wake() has done since the last turn began */
	bool was_woken;                   /* see io_woken() */
	unsigned tasks;                   /* io/task.h: added and not handed back yet */
	struct io_reader *reader;         /* NULL until a file is not in memory */
	size_t window_bytes;              /* of all windows, see window.c */
	const struct io_mechanism *mechanism;
	void *mech;             /* the mechanism's own */
	char piece[128 * 1024]; /* iob.c copies through it */
};

/* --- loop.c --- */

/* Notes that a call has shown, by EAGAIN (result is -1) or by a short transfer, that the descriptor is no longer ready.
 * Returns the result. */
ssize_t io_exhausted(io_loop *loop, int fd, enum io_direction direction, ssize_t result);

/* Notes that fd is not ready and, if it is wanted, has it watched. Returns 0, or -1 as io_wantread(). */
int io_not_ready(io_loop *loop, int fd, enum io_direction direction);

/* --- sendfile-linux.c and others: sendfile(2) or its substitute; a build takes one --- */

/* Does what io_sendfile() does, without the bookkeeping. Sets *full if the socket took less than it was given, whatever
 * the return value. */
ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full);

/* --- timer.c: the deadlines of descriptors; io_timeout() and io_timedout() are in io.h --- */

void io_timer_init(io_loop *loop);
void io_timer_cancel(io_loop *loop, int fd);

/* Moves the descriptors whose deadlines have passed to the list of io_timedout(). */
void io_timer_advance(io_loop *loop);

/* Returns the nanoseconds until the next slot in use comes up, or -1 if none is. */
int64_t io_timer_limit(io_loop *loop);

/* --- alarm.c --- */

/* Returns the nanoseconds until the first alarm, but at most timeout_ns (-1: no limit) and an hour. */
int64_t io_alarm_limit(io_loop *loop, int64_t timeout_ns);

/* --- wake.c: the pipe that ends a wait from another thread (io_wake()) --- */

/* Opens the pipe of the loop. Returns 0, or -1 with errno; io_wake_close() closes it in either case. */
int io_wake_open(io_loop *loop);
void io_wake_close(io_loop *loop);

/* Empties the pipe. */
void io_wake_drain(io_loop *loop);

#endif
