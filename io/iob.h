/* iob.h - a batch to be sent to a stream socket: memory, ranges of files, and bytes that are made when their turn
 * comes, in order. It is sent with as few calls as the system allows (writev, and sendfile with the memory before it),
 * and continues at any byte. After libowfat's iob_*. */
#ifndef GATLING_IO_IOB_H
#define GATLING_IO_IOB_H

#include <stdbool.h>
#include <sys/stat.h>

#include "io/io.h"
#include "io/task.h"

typedef struct iob iob;

enum {
	/* A batch copies at most this many bytes, and takes this many parts, until it is empty: those sent count. */
	IOB_COPY_LIMIT = 256 * 1024,
	IOB_PART_LIMIT = 1024,
	IOB_SOURCE_PIECE = 64 * 1024, /* at most so many bytes of a source are made ahead */
	/* A file that is copied (see struct iob_file) is read into memory in pieces of so many bytes. */
	IOB_FILE_PIECE = 128 * 1024,
	/* Only so many bytes at its end are copied; those before them are sent by reference (sendfile(2)). Once this many
	 * bytes have been accepted behind them, they have left the queues of the sender's and the receiver's sockets, which
	 * may be on the same machine. */
	IOB_FILE_COPIED = 64 * 1024 * 1024,
	/* When a full socket could not be written to for so many milliseconds, so many bytes at the end of the file are
	 * copied, too, as many as the queue of a socket holds (tcp_wmem): a slow reader takes what is sent by reference
	 * long after `unchanged` was called. */
	IOB_SLOW_MS = 100,
	IOB_SLOW_COPIED = 4 * 1024 * 1024
};

/* Called once, when a part has been sent or is dropped. */
typedef void iob_release(void *owner);

/* Returns an empty batch, or NULL (ENOMEM). */
iob *iob_new(void);

/* Releases all parts and frees the batch; NULL is allowed. */
void iob_free(iob *batch);

/* Releases all parts; the batch is empty and may be used again. */
void iob_reset(iob *batch);

/* The iob_add functions append a part; an empty one is released at once. They return 0, or -1 with errno ENOMEM (no
 * memory, or a limit reached). Then nothing was appended, but release was called, so that the caller never has to. */

/* Appends length bytes, which must stay valid and unchanged until release(owner); release may be NULL. */
int iob_addbuf(iob *batch, const void *buffer, size_t length, iob_release *release, void *owner);

/* Appends a copy of length bytes; buffer may be NULL if length is 0. */
int iob_addcopy(iob *batch, const void *buffer, size_t length);

/* Returns room for length bytes, to be written in place, or NULL (ENOMEM). The next call must be iob_commit(), which
 * appends the first length bytes of the room; 0: none. */
char *iob_reserve(iob *batch, size_t length);
void iob_commit(iob *batch, size_t length);

/* Returns whether a file is as it was when it was added. now: of fstat(2). */
typedef bool iob_unchanged(void *owner, const struct stat *now);

struct iob_file {
	int fd;
	const char *map; /* the whole file mapped (mmap(2)), which only the kernel reads; or NULL */
	/* Called before the last bytes are sent; if it returns false, sending fails with EIO. NULL: the file is sent as it
	 * is when its bytes leave. */
	iob_unchanged *unchanged;
	/* The bytes are copied before `unchanged` is called, so that a response that arrives whole is of one state of the
	 * file. Otherwise they are sent by reference (sendfile(2)), unless the reader is slow (IOB_SLOW_MS), and include
	 * what is written to the file while the last of them are under way. */
	bool copied;
	/* Threads that read the file, since it may be on another machine, so that no call of the loop may wait for it
	 * (window.h); map is NULL. NULL: it is on this machine. */
	io_tasks *readers;
};

/* Appends length bytes of a file from offset on. It must stay open and mapped until release(owner). */
int iob_addfile(iob *batch, struct iob_file file, off_t offset, uint64_t length, iob_release *release, void *owner);

/* Makes the next bytes of a source, at least 1 and at most size. Returns how many, or -1 with errno; after that it is
 * not called again. */
typedef ssize_t iob_fill(void *owner, char *buffer, size_t size);

/* Appends length bytes that fill(owner, ...) makes when their turn comes, in the thread of the loop. Only from then
 * until they have been sent or are dropped, the batch holds memory for a piece of them, and the owner holds `memory`
 * bytes (see iob_memory()). fill is not called after release(owner). */
int iob_addsource(iob *batch, uint64_t length, iob_fill *fill, iob_release *release, void *owner, size_t memory);

/* Return the bytes and the parts that are still to be sent. */
uint64_t iob_bytesleft(const iob *batch);
size_t iob_parts(const iob *batch);

/* Returns the bytes of memory that the batch takes: its own, those that it has copied, and those of the source whose
 * turn it is. Buffers and files, which have other owners, do not count. */
size_t iob_memory(const iob *batch);

enum iob_result {
	IOB_DONE, /* all was sent; the batch is empty and may be used again */
	/* The socket is full, `most` is used up, or the next bytes of a file are not in memory and a thread of the loop
	 * reads them (Linux): call again when io_canwrite() returns fd. */
	IOB_AGAIN,
	/* With errno; EIO: a file has become shorter or has changed. After this, and after any error of a source (ENOMEM:
	 * no memory for a piece), the connection can only be closed. */
	IOB_FAILED
};

/* Sends what the socket takes, at most `most` bytes, so that others get their turn. Adds the bytes sent to *sent. rest:
 * as of io_trywritev(), for what follows the batch. */
enum iob_result iob_send(io_loop *loop, int fd, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Moves up to length bytes from the front of the batch into buffer, for a caller that sends them to fd by other means
 * (TLS). Returns the bytes moved. They are fewer if the next bytes of a file are not in memory: then, as with
 * iob_send(), fd is not ready for writing until a thread has read them; if there are none at all, the result is -1 with
 * EAGAIN. Other errors are those of iob_send(). A source writes directly into buffer. */
ssize_t iob_take(io_loop *loop, int fd, iob *batch, void *buffer, size_t length);

/* Returns the bytes at the front of the batch without copying them, and their number in *length; they stay valid until
 * the batch changes. NULL: the first part is a file or a source, or the batch is empty. */
const char *iob_front(const iob *batch, size_t *length);

/* Drops the first length bytes, at most as many as iob_front() has returned. */
void iob_drop(iob *batch, size_t length);

#endif
