/* io.h - the event layer: one loop per thread, nothing shared between loops.
 *
 * The verbs are those of Dan Bernstein's io library as libowfat extended it; each takes the loop first.
 * A descriptor is adopted with io_fd() and assumed to be ready. It is registered with the kernel only
 * when it is wanted and a call on it has failed with EAGAIN (lazy registration): a connection that is accepted,
 * answered and closed in one turn never touches the event mechanism.
 *
 *     io_fd(loop, fd, cookie);
 *     io_wantread(loop, fd);
 *     for (;;) {
 *         io_wait(loop, -1);
 *         while ((fd = io_canread(loop)) != -1) ...
 *         while ((fd = io_canwrite(loop)) != -1) ...
 *         while ((fd = io_timedout(loop)) != -1) ...
 *     }
 *
 * Readiness is a hint: a call on a descriptor that was handed out may still fail with EAGAIN. A ready and
 * wanted descriptor that was not used until EAGAIN is handed out again after the next io_wait().
 *
 * Loops may share a listening socket, each through a descriptor of its own: a connection goes to one of them.
 *
 * A loop belongs to the thread that made it; io_wake() alone may be called by another one.
 * Descriptors must be in non-blocking mode, and the program must ignore SIGPIPE. Except for io_fd() and io_cookie(),
 * functions take adopted descriptors only. */
#ifndef GATLING_IO_H
#define GATLING_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct io_loop io_loop;

/* Returns the name of the mechanism compiled in: "epoll", "uring", "kqueue", "sigio" or "poll"; or a text that says
 * which one is used in its place, and why. */
const char *io_mechanism(void);

/* Returns a new loop for the calling thread, or NULL with errno. */
io_loop *io_loop_new(void);

/* Frees the loop; NULL is allowed. Descriptors that are still adopted are not closed, but bytes that io_uring has
 * received from them are lost. */
void io_loop_free(io_loop *loop);

/* Adopts fd. The caller still owns it, and closes it with io_close(). The caller also owns the cookie, which must not
 * be NULL. Returns 0, or -1 with errno: EBADF (negative, or adopted already) or ENOMEM. */
int io_fd(io_loop *loop, int fd, void *cookie);

/* Returns the cookie of an adopted descriptor, or NULL for any other number, the loop's own descriptors included. */
void *io_cookie(const io_loop *loop, int fd);

/* Returns one more than the highest descriptor ever adopted: the bound for a walk over all cookies. */
int io_fd_bound(const io_loop *loop);

/* Closes fd, which is then no longer adopted. */
void io_close(io_loop *loop, int fd);

/* Say whether io_canread() and io_canwrite() hand out fd. The first two return 0, or -1 with errno if the kernel
 * cannot watch the descriptor (ENOMEM, ENOSPC): close it. */
int io_wantread(io_loop *loop, int fd);
int io_wantwrite(io_loop *loop, int fd);
void io_dontwantread(io_loop *loop, int fd);
void io_dontwantwrite(io_loop *loop, int fd);

/* Says both: that fd is wanted for these directions, and for no other. Returns what io_wantread() does. */
int io_want(io_loop *loop, int fd, bool read, bool write);

/* Sets, moves or (0) cancels the deadline of fd, in milliseconds of io_now(). io_timedout() hands the descriptor out
 * once, at the deadline or up to IO_TICK_MS after it, never before it. io_wait() adds to that the time since the last
 * wait; io_waituntil() does not. O(1). */
enum { IO_TICK_MS = 100 };
void io_timeout(io_loop *loop, int fd, int64_t deadline_ms);
int64_t io_deadline(const io_loop *loop, int fd); /* 0: none */

/* Waits until a descriptor is ready, a deadline has passed, io_wake() is called, or timeout_ms are over (-1: no limit;
 * 0: does not wait). Returns 0, also after a signal, or -1 with errno if the mechanism failed. */
int io_wait(io_loop *loop, int timeout_ms);

/* As io_wait(), but until a time on the clock of io_now_ns(). It is rounded up to a millisecond where the mechanism
 * has no finer unit: poll(2), and epoll_wait(2) before Linux 5.11. */
int io_waituntil(io_loop *loop, int64_t deadline_ns);

/* Return the next descriptor that is ready and wanted, or past its deadline; or -1 if there is none until the next
 * io_wait(). A descriptor comes up at most once per io_wait() and direction. */
int io_canread(io_loop *loop);
int io_canwrite(io_loop *loop);
int io_timedout(io_loop *loop);

/* io_postpone_read() and io_postpone_write() put the descriptor that io_canread() or io_canwrite() has just returned
 * behind all others of that direction. They return false, and do nothing, if no other one waits, or without memory.
 * io_postponed_read() and io_postponed_write() return the postponed descriptors, first in, first out, or -1; those that
 * are not fetched in one turn are left for the next. Until then io_canread() and io_canwrite() return such a descriptor
 * only after another event, and it keeps its place if it is postponed again. While any is postponed, io_wait() does not
 * wait, and collects everything that is ready. */
bool io_postpone_read(io_loop *loop, int fd);
bool io_postpone_write(io_loop *loop, int fd);
int io_postponed_read(io_loop *loop);
int io_postponed_write(io_loop *loop);

/* Return the monotonic clock as of the last io_wait(), in milliseconds and in nanoseconds. */
int64_t io_now(const io_loop *loop);
int64_t io_now_ns(const io_loop *loop);

/* Returns the same clock as of now, in nanoseconds. */
int64_t io_read_clock(void);

/* Call recv(2), send(2), sendmsg(2) or accept(2) on an adopted socket, and read(2) or write(2) on anything else. They
 * return what the system call returned. EAGAIN marks the descriptor as not ready (if the kernel cannot watch it, the
 * error is as of io_wantread()); so does a transfer shorter than asked for, which on a stream socket proves the same
 * without a second call. On sockets they try again after EINTR, and io_accept() also after ECONNABORTED. io_accept()
 * returns a new non-blocking, close-on-exec descriptor that is not adopted yet. With IO_MORE the last segment may wait
 * for data that follows at once, or for the FIN of io_close(), which it then carries (MSG_MORE on Linux; ignored
 * elsewhere). */
enum io_rest { IO_LAST, IO_MORE };
ssize_t io_tryread(io_loop *loop, int fd, void *buffer, size_t length);
ssize_t io_trywrite(io_loop *loop, int fd, const void *buffer, size_t length);
ssize_t io_trywritev(io_loop *loop, int fd, const struct iovec *part, int parts, enum io_rest rest);
int io_accept(io_loop *loop, int fd, struct sockaddr *peer, socklen_t *peer_length);

/* Sends the memory in head (at most IO_HEAD_PARTS parts, or none), then length bytes of file from offset on, to the
 * stream socket fd, in as few calls as the system allows. Returns the bytes sent of both together: fewer than asked for
 * if the socket is full or the file ends, and 0 only if the file ends at or before offset and there was no head. Or -1
 * with errno, also EAGAIN. */
enum { IO_HEAD_PARTS = 64 };
ssize_t io_sendfile(io_loop *loop, int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length);

/* Moves bytes from one stream socket to another, as io_tryread() on `from` and then io_trywrite() on `to` would; on
 * Linux without copying them (splice(2)). Returns what io_tryread() returns. *sent is how many of these bytes `to` has
 * taken; the others are at the beginning of buffer, which must have room for length bytes. An error of `to` shows with
 * the next call. */
ssize_t io_splice(io_loop *loop, int from, int to, void *buffer, size_t length, size_t *sent);

/* Returns whether io_splice() copies nothing. */
bool io_splices(io_loop *loop);

/* Returns how many bytes a stream socket takes at once, unless its segments are small; 0: none, or unknown. */
size_t io_room(int fd);

/* Returns whether fd is not ready for writing because a part of a file is being read first, see iob_send(). */
bool io_reading(const io_loop *loop, int fd);

/* Says whether fd may be ready for writing even so, because the caller has something else to send. */
void io_write_meanwhile(io_loop *loop, int fd, bool meanwhile);

/* Marks fd as ready for reading, for callers that keep input of their own: it is handed out, if it is wanted, after the
 * next io_wait(). */
void io_mark_readable(io_loop *loop, int fd);

/* For callers that make the system calls themselves (TLS): mark fd as not ready after EAGAIN. Return 0, or -1 as
 * io_wantread(). */
int io_eagain_read(io_loop *loop, int fd);
int io_eagain_write(io_loop *loop, int fd);

/* Gives the calling thread a descriptor table of its own, in which all descriptors above 2 are closed except those in
 * keep, which is sorted. Returns false, with the table still shared and nothing closed, if the system does not have
 * such tables or forbids them. */
bool io_private_descriptors(int *keep, unsigned count);

/* Closes all descriptors above 2 except those in keep, which is sorted. It is for a process that was just forked, when
 * few descriptors have been opened. */
void io_close_others(int *keep, unsigned count);

/* Raises this process's limit of open descriptors as far as it is allowed. Returns the limit; 0: unknown. */
uint64_t io_raise_descriptor_limit(void);

/* Returns how many processors this process may run on, at least 1. More loops than that are of no use. */
unsigned io_processors(void);

/* Returns whether io_wake() ended the last io_wait(), or was called while it returned. */
bool io_woken(const io_loop *loop);

/* Makes the loop's current or next io_wait() return. May be called from a signal handler, and from any thread that
 * shares the descriptor table of the loop's thread. If the system refuses to wake the loop during a wait, the wait ends
 * with the next event, or after a second if tasks are under way (io/task.h); io_woken() is true then, too. */
void io_wake(io_loop *loop);

#endif
