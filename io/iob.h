/* iob.h - the outgoing batch: memory, file ranges and what is yet to be made, in order, sent to a stream socket with as
 * few calls as the system allows (writev, sendfile with the memory before it), resumable at any byte. After libowfat's
 * iob_*. */
#ifndef GATLING_IO_IOB_H
#define GATLING_IO_IOB_H

#include <stdbool.h>

#include "io/io.h"

typedef struct iob iob;

enum {
	/* Bytes that one batch copies, and parts that it takes, at most until it is empty: what has been sent counts. */
	IOB_COPY_LIMIT = 256 * 1024,
	IOB_PART_LIMIT = 1024,
	IOB_SOURCE_PIECE = 64 * 1024, /* bytes that it has a source make ahead at most */
	/* Of a file that is copied (see struct iob_file), bytes read into memory at a time, */
	IOB_FILE_PIECE = 128 * 1024,
	/* and bytes at its end for which this is done. Those before them are sent by reference (sendfile(2)). When this
	 * many have been accepted behind them, they are in no queue any more: of the sender's and the receiver's socket
	 * together, which may be on the same machine. */
	IOB_FILE_COPIED = 64 * 1024 * 1024
};

/* Called once when a part is sent or dropped. */
typedef void iob_release(void *owner);

/* An empty batch, or NULL (ENOMEM). */
iob *iob_new(void);

/* Releases all parts, and frees the batch. NULL is allowed. */
void iob_free(iob *batch);

/* Releases all parts; the batch is empty and may be used again. */
void iob_reset(iob *batch);

/* The iob_add functions append; an empty part is released at once. 0, or -1 with errno ENOMEM (no memory, or a limit
 * reached): then nothing was appended, and release was called all the same, so that the caller never has to. */

/* length bytes that stay valid and unchanged until release(owner); release may be NULL. */
int iob_addbuf(iob *batch, const void *buffer, size_t length, iob_release *release, void *owner);

/* length bytes, copied; buffer may be NULL if there are none. */
int iob_addcopy(iob *batch, const void *buffer, size_t length);

/* Room for length bytes to be written in place; NULL: ENOMEM. The next call must be iob_commit(), which appends the
 * first length bytes of it, or none. */
char *iob_reserve(iob *batch, size_t length);
void iob_commit(iob *batch, size_t length);

/* Returns whether a file is as it was when it was added. */
typedef bool iob_unchanged(void *owner);

struct iob_file {
	int fd;
	const char *map; /* the whole file in memory (mmap(2)), which the kernel alone reads; NULL: it is not there */
	/* Asked before the last bytes are sent; false is a failure, EIO. NULL: what the file contains when it leaves is
	 * sent.
	 */
	iob_unchanged *unchanged;
	/* Bytes are copied before `unchanged` is asked: so all that arrive complete are of one state. Otherwise they leave
	 * by reference (sendfile(2)), and what is written to the file while the last of them are under way is sent. */
	bool copied;
};

/* length bytes of a file from offset on; it stays open and mapped until release(owner). */
int iob_addfile(iob *batch, struct iob_file file, off_t offset, uint64_t length, iob_release *release, void *owner);

/* Makes the next bytes of a source, at least one and at most size, in order. How many; -1 with errno: it cannot, and
 * will not be asked again. */
typedef ssize_t iob_fill(void *owner, char *buffer, size_t size);

/* length bytes that fill(owner, ...) makes when their turn has come, in the thread of the loop. Only from then until
 * they are sent or dropped, memory for a piece of them is held, and what the owner needs (memory bytes, see
 * iob_memory()). Once release(owner) is called, fill is not. */
int iob_addsource(iob *batch, uint64_t length, iob_fill *fill, iob_release *release, void *owner, size_t memory);

/* Bytes and parts still to be sent. */
uint64_t iob_bytesleft(const iob *batch);
size_t iob_parts(const iob *batch);

/* Bytes of memory that it takes: its own, what is copied, and that of the source whose turn it is; not buffers and
 * files, which are others'. */
size_t iob_memory(const iob *batch);

/* Sends what it can, and no more than `most` bytes, so that others get their turn. IOB_DONE: all of it; the batch is
 * empty and may be used again. IOB_AGAIN: the socket is full, or most is used up, or what comes next of a file is not
 * in memory (Linux): then a thread of the loop reads it. Call again when io_canwrite() says so. IOB_FAILED: errno says
 * why; EIO is a file that has become shorter or has changed, after which the connection can only be closed, as it can
 * after any errno of a source (ENOMEM: no memory for a piece). *sent grows by the bytes sent. rest: as of
 * io_trywritev(), for what comes behind the batch. */
enum iob_result { IOB_DONE, IOB_AGAIN, IOB_FAILED };
enum iob_result iob_send(io_loop *loop, int fd, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Takes up to length bytes off the front of the batch into buffer, for a caller that sends them to fd by other means (a
 * filter). Returns the bytes taken; fewer if what comes next of a file is not in memory: then, as with iob_send(), fd
 * is not ready for writing until a thread has read it; if there were none, returns -1 with errno EAGAIN. -1 with any
 * other errno: as of iob_send(). A source writes into buffer, and no piece of it is kept. */
ssize_t iob_take(io_loop *loop, int fd, iob *batch, void *buffer, size_t length);

/* Returns the bytes at the front of the batch that are in memory, without copying them: *length of them, good until the
 * batch is changed. NULL: what comes first is of a file or a source, or the batch is empty. */
const char *iob_front(const iob *batch, size_t *length);

/* Drops the first bytes, at most as many as iob_front() has returned. */
void iob_drop(iob *batch, size_t length);

#endif
