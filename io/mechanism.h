/* mechanism.h - what an event mechanism has to define, and the loop that it sees. Internal to io/.
 *
 * A mechanism is one file that defines the five io_mech_ functions and the name; the build compiles exactly one. Of the
 * loop it may read everything, and write `mech`, mech_index and mech_state, which are 0 when a descriptor is adopted.
 */
#ifndef GATLING_IO_MECHANISM_H
#define GATLING_IO_MECHANISM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"

#ifdef MSG_MORE
enum { IO_MSG_MORE = MSG_MORE };
#else
enum { IO_MSG_MORE = 0 };
#endif

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

enum io_direction { IO_READ = 0, IO_WRITE = 1, IO_DIRECTIONS = 2 };

/* What io_ready() is told; a set. IO_HANGUP: the peer is gone or done, reading will say so. */
enum { IO_CAN_READ = 1 << IO_READ, IO_CAN_WRITE = 1 << IO_WRITE, IO_HANGUP = 4 };

enum {
	WHEEL_SLOTS = 256,               /* of IO_TICK_MS each; a later deadline goes round again */
	WHEEL_WORDS = WHEEL_SLOTS / 64,  /* of the bit map of slots in use */
	SLOT_NONE = 0,                   /* timer_slot of an entry in no list; slot n is stored as n + 1 */
	SLOT_TIMED_OUT = WHEEL_SLOTS + 1 /* in the list that io_timedout() empties */
};

/* One adopted descriptor. All zero is a valid, unused entry, so that a fresh table costs no memory
 * before it is touched. 40 bytes: an idle connection pays for one. */
struct io_entry {
	void *cookie; /* NULL: not adopted */
	int64_t deadline_ms;
	int32_t timer_next, timer_prev;
	int32_t queue_next[IO_DIRECTIONS];
	int32_t mech_index; /* the mechanism's own */
	uint16_t timer_slot : 10;
	uint16_t mech_state : 6; /* the mechanism's own */
	bool can_read : 1, can_write : 1;
	bool want_read : 1, want_write : 1;
	bool queued_read : 1, queued_write : 1;
	bool again : 1;   /* an event came while it was readable: a short read does not prove that it is drained */
	bool reading : 1; /* the file that is to be sent: not ready for writing */
	bool read : 1;    /* that has been done, and nobody has asked since */
	bool hangup : 1;  /* end of file or an error waits behind the data: a short read never proves it */
};

/* Descriptors to hand out, first in, first out; linked through queue_next. */
struct io_queue {
	int head, tail;
	int length;
	int turn; /* how many of them belong to the current turn */
	int last; /* the one handed out last, -1 if none: it may have to come back */
};

struct io_loop {
	struct io_entry *entry;
	int size;  /* of the table */
	int bound; /* see io_fd_bound() */
	struct io_queue queue[IO_DIRECTIONS];
	int64_t now_ns;
	int64_t tick; /* the last tick whose slot has been emptied */
	uint64_t slots_used[WHEEL_WORDS];
	int32_t slot[WHEEL_SLOTS + 1]; /* heads of the lists; the last one is of those timed out */
	int wake_read, wake_write;     /* a pipe */
	atomic_bool woken;             /* a byte is in it, or about to be */
	struct io_reader *reader;      /* NULL as long as all files were in memory */
	void *mech;                    /* the mechanism's own */
	bool mech_replaced;            /* and this: another one has taken its place */
};

/* 0, or -1 with errno. io_mech_free() is called also when io_mech_init() failed. */
int io_mech_init(io_loop *loop);
void io_mech_free(io_loop *loop);

/* fd is wanted in this direction and was not ready when last used: from here on a change must be reported, and
 * also readiness that came before this call. Called again each time that holds anew. May call io_ready(). 0, or -1 with
 * errno. Nobody says when a direction is not wanted any more: what is reported then is kept until it is. */
int io_mech_watch(io_loop *loop, int fd, enum io_direction direction);

/* fd, watched or not, is about to be closed: afterwards nothing may refer to it. */
void io_mech_forget(io_loop *loop, int fd);

/* Waits up to timeout_ns (-1: no limit; a mechanism that cannot count in nanoseconds rounds up) and reports through
 * io_ready(). 0, or -1 with errno (EINTR is not an error). */
int io_mech_wait(io_loop *loop, int64_t timeout_ns);

const char *io_mech_name(void);

/* A mechanism may read by itself. Whether it does so for fd: then *result is what io_tryread() is to return, with
 * errno, and readiness is noted. false: the call is to be made, and will be the mechanism's when it has answered
 * EAGAIN. */
#ifdef IO_RECEIVES
bool io_mech_received(io_loop *loop, int fd, void *buffer, size_t length, ssize_t *result);
#else
static inline bool io_mech_received(io_loop *loop, int fd, void *buffer, size_t length, ssize_t *result) {
	(void)loop, (void)fd, (void)buffer, (void)length, (void)result;
	return false;
}
#endif

/* For the mechanisms: fd may be used again. A report too many does no harm, also about a number that is not adopted, or
 * by another owner now. An error is to be reported as everything that would meet it: IO_HANGUP | IO_CAN_WRITE. */
void io_ready(io_loop *loop, int fd, unsigned can);

/* loop.c for transfer.c and sendfile-*.c: marks fd not ready and, if it is wanted, has it watched. 0 or -1. */
int io_not_ready(io_loop *loop, int fd, enum io_direction direction);

/* sendfile-*.c, one per platform. What io_sendfile() does, without the bookkeeping: *full is set when the
 * socket took less than it was given, whatever the return value. EINTR is retried. */
ssize_t io_platform_sendfile(int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length,
							 bool *full);

/* reader.c: whether the first `now` of length bytes of file from offset on can be sent to fd without waiting for a
 * disk, as far as that can be known. If not, a thread reads them into memory, and what follows up to IO_READ_WINDOW;
 * until then fd is not ready for writing. When that is done, the answer is true once, whatever came of it. The file may
 * be closed meanwhile. */
enum { IO_READ_WINDOW = 2 * 1024 * 1024 };
bool io_in_memory(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length);
void io_read_forget(struct io_reader *reader, int fd); /* fd is closed while that goes on */

void io_reader_collect(struct io_reader *reader); /* after io_wake(): calls io_has_read() for what has been read */
void io_reader_free(struct io_reader *reader);

/* loop.c for reader.c: fd, if it is still waiting for that, is as ready for writing as before. */
void io_has_read(io_loop *loop, int fd);

/* timer.c */
void io_timer_init(io_loop *loop);
void io_timer_cancel(io_loop *loop, int fd);
void io_timer_advance(io_loop *loop);        /* moves what is due to the timed-out list */
int64_t io_timer_limit(const io_loop *loop); /* nanoseconds to the next slot in use; -1: none is */

#endif
