/* io.h - the event layer: one loop per thread, nothing shared between loops.
 *
 * The verbs are those of Dan Bernstein's io library as libowfat extended it; each takes the loop first.
 * A descriptor is adopted with io_fd() and assumed ready. Only when a call on it answers EAGAIN, and it
 * is wanted, is the kernel told about it (lazy registration): what is accepted, answered and closed in
 * one go never touches the event mechanism.
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
 * Readiness is a hint: a descriptor handed out may still answer EAGAIN. A ready and wanted descriptor that
 * was not used until EAGAIN is handed out again after the next io_wait().
 *
 * Loops may share a listening socket, each through a descriptor of its own: a connection goes to one of them.
 *
 * A loop belongs to the thread that made it; io_wake() alone may be called by another one.
 * Descriptors must be in non-blocking mode. SIGPIPE is the program's to ignore. Functions that take an fd take one that
 * is adopted; io_fd() and io_cookie() are the exceptions. */
#ifndef GATLING_IO_H
#define GATLING_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct io_loop io_loop;

/* The mechanism compiled in: "epoll", "uring", "kqueue", "sigio" or "poll"; or what has taken its place, and why. */
const char *io_mechanism(void);

/* A new loop for the calling thread, or NULL with errno of what failed. */
io_loop *io_loop_new(void);

/* Frees the loop. Descriptors still adopted are not closed; bytes that io_uring has received for them are lost. NULL is
 * allowed. */
void io_loop_free(io_loop *loop);

/* Adopts fd, which stays the caller's until io_close(). The cookie is the caller's too and not NULL.
 * 0, or -1 with errno: EBADF (negative or adopted already), ENOMEM. */
int io_fd(io_loop *loop, int fd, void *cookie);

/* The cookie of an adopted descriptor, NULL for any other number (the loop's own descriptors, too). */
void *io_cookie(const io_loop *loop, int fd);

/* One more than the highest descriptor ever adopted: the bound for a walk over all cookies. */
int io_fd_bound(const io_loop *loop);

/* Forgets fd and closes it. */
void io_close(io_loop *loop, int fd);

/* Says whether fd is to be handed out by io_canread() and io_canwrite().
 * 0, or -1 with errno when the kernel cannot be told about the descriptor (ENOMEM, ENOSPC): close it. */
int io_wantread(io_loop *loop, int fd);
int io_wantwrite(io_loop *loop, int fd);
void io_dontwantread(io_loop *loop, int fd);
void io_dontwantwrite(io_loop *loop, int fd);

/* Sets, moves or (0) cancels the deadline of fd, in milliseconds of io_now(). io_timedout() hands the
 * descriptor out once, at the deadline or up to IO_TICK_MS after it, never before; io_wait(), but not io_waituntil(),
 * adds the time since the wait before. O(1). */
enum { IO_TICK_MS = 100 };
void io_timeout(io_loop *loop, int fd, int64_t deadline_ms);
int64_t io_deadline(const io_loop *loop, int fd); /* 0: none */

/* Waits until something is ready, a deadline passes, io_wake() is called or timeout_ms have gone
 * (-1: no limit; 0: only looks). 0, also after a signal; -1 with errno if the mechanism failed. */
int io_wait(io_loop *loop, int timeout_ms);

/* The same with a limit on the clock of io_now_ns(), rounded up to milliseconds where the mechanism cannot
 * count in less: poll(2), and epoll_wait(2) before Linux 5.11. */
int io_waituntil(io_loop *loop, int64_t deadline_ns);

/* The next descriptor that is ready and wanted, or past its deadline; -1 when there is none until the
 * next io_wait(). A descriptor comes up at most once per io_wait() and direction. */
int io_canread(io_loop *loop);
int io_canwrite(io_loop *loop);
int io_timedout(io_loop *loop);

/* Puts what io_canread() or io_canwrite() has just handed out behind all others in that direction. The second two hand
 * it out, first in, first out; what they do not come to in this turn they hand out in a later one. Meanwhile the first
 * two hand it out only after another event, and to postpone it again keeps its place. While there is any, io_wait()
 * does not wait; after a turn with any it looks at everything that is ready. false: nothing else waits, so nothing is
 * gained and nothing was done, or there is no memory. */
bool io_postpone_read(io_loop *loop, int fd);
bool io_postpone_write(io_loop *loop, int fd);
int io_postponed_read(io_loop *loop);
int io_postponed_write(io_loop *loop);

/* The monotonic clock as of the last io_wait(), in milliseconds and in nanoseconds. */
int64_t io_now(const io_loop *loop);
int64_t io_now_ns(const io_loop *loop);

/* The same clock as of now, in nanoseconds. */
int64_t io_read_clock(void);

/* recv(2), send(2), sendmsg(2) and accept(2) on an adopted socket, read(2) and write(2) on anything else. They return
 * what the system call did; -1 with EAGAIN (or, where the kernel could not be told, as io_wantread()) marks the
 * descriptor not ready, and so does a transfer shorter than asked for, which on a stream socket proves the same without
 * a second call. EINTR is retried on sockets, by io_accept() ECONNABORTED too. io_accept() answers a new non-blocking,
 * close-on-exec descriptor that is not adopted yet. IO_MORE: the last segment may wait for what follows at once, also
 * for io_close(), whose FIN it then carries (MSG_MORE, Linux; elsewhere nothing). */
enum io_rest { IO_LAST, IO_MORE };
ssize_t io_tryread(io_loop *loop, int fd, void *buffer, size_t length);
ssize_t io_trywrite(io_loop *loop, int fd, const void *buffer, size_t length);
ssize_t io_trywritev(io_loop *loop, int fd, const struct iovec *part, int parts, enum io_rest rest);
int io_accept(io_loop *loop, int fd, struct sockaddr *peer, socklen_t *peer_length);

/* Sends the memory in head (may be none), then length bytes of file from offset on, to the stream socket fd,
 * in as few calls as the system allows. The bytes sent of both together; fewer than asked for when the
 * socket is full or the file ends; 0 only when the file ends at or before offset and there was no head.
 * -1 with errno, EAGAIN included. At most IO_HEAD_PARTS parts. */
enum { IO_HEAD_PARTS = 64 };
ssize_t io_sendfile(io_loop *loop, int fd, const struct iovec *head, int parts, int file, off_t offset, size_t length);

/* Moves bytes from one stream socket to another: does what io_tryread() of `from` and then io_trywrite() to `to` would,
 * where it can without a copy (splice(2), Linux). Returns what io_tryread() does. *sent: how many of these bytes `to`
 * has taken; buffer, which has room for length, begins with the others. An error of `to` shows with the next call.
 * io_relays(): whether it copies nothing. io_room(): how many bytes a stream socket takes at once, unless its segments
 * are small; 0: none, or it is not known. */
bool io_relays(io_loop *loop);
size_t io_room(int fd);
ssize_t io_relay(io_loop *loop, int from, int to, void *buffer, size_t length, size_t *sent);

/* Whether fd is not ready for writing because what is to be sent of a file is being read, see iob_send(). */
bool io_reading(const io_loop *loop, int fd);

/* Says whether fd is ready for writing even so, because something else is to be sent when there is room. */
void io_write_meanwhile(io_loop *loop, int fd, bool meanwhile);

/* For callers that do the system call themselves (TLS): it answered EAGAIN, so fd is not ready.
 * 0, or -1 as io_wantread(). */
int io_eagain_read(io_loop *loop, int fd);
int io_eagain_write(io_loop *loop, int fd);

/* Gives the calling thread a descriptor table of its own, in which of the numbers over 2 only those in keep are open.
 * false: the system has no such thing (or forbids it), the table stays shared and nothing was closed. Sorts keep. */
bool io_private_descriptors(int *keep, unsigned count);

/* Lets this process open as many descriptors as it may; how many those are, 0 if that cannot be known. */
uint64_t io_raise_descriptor_limit(void);

/* How many processors this process may run on, at least 1: no more loops are of use. */
unsigned io_processors(void);

/* Whether io_wake() ended the last io_wait(), or was called while it returned. */
bool io_woken(const io_loop *loop);

/* Makes the loop's current or next io_wait() return. If the system refuses that, the wait ends with the next event, or
 * after a second if tasks are under way (io/task.h); io_woken() is true then, too. Any thread that shares the
 * descriptor table with the loop's thread may call it, and a signal handler. */
void io_wake(io_loop *loop);

#endif
