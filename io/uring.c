/* uring.c - io_uring(7): requests to the kernel are written to a ring, and submitted in the call of the next wait. Once
 * a socket has been read until it was empty, the kernel receives from it by itself (multishot), into buffers that all
 * sockets share. Everything else is polled for readiness, once each time: pipes, sockets that their owner reads (TLS),
 * sockets that wait for room, and listeners, since a kernel that accepts by itself knows no limit but that of
 * descriptors.
 *
 * If the kernel refuses the ring, epoll is used instead, and io_mechanism() says so. */
#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/mechanism.h"
#include "io/queue.h"

enum {
	ENTRIES = 256, /* of the ring; when it is full, they are submitted before the next wait */
	COMPLETIONS = 4096,
	BUFFERS = 256, /* that all sockets share; a power of two */
	BUFFER_BYTES = 4096,
	BUFFER_GROUP = 0,
	FDS_MINIMUM = 64
};

/* The purpose of an entry of the ring. user_data consists of it, the descriptor and its generation. */
enum purpose { POLL_READ, POLL_WRITE, RECEIVE, CANCEL };

/* The state of a descriptor, adopted or not. */
struct descriptor {
	uint32_t generation;     /* grows when it is closed: completions of an earlier one are stale */
	int16_t first, last;     /* of the list of buffers received; -1: none */
	uint16_t used;           /* bytes of the first buffer that have been read */
	uint16_t error;          /* an errno, behind the buffers */
	uint8_t armed;           /* the set of purposes for which the kernel has, or is given, an entry */
	bool receives : 1;       /* it is read by io_tryread() only, */
	bool cannot_receive : 1; /* but is not a socket */
	bool ended : 1;          /* end of file, behind the buffers */
	bool starved : 1;        /* there was no free buffer: it is polled next time */
	bool cancelled : 1;      /* it is not wanted: the kernel has been told to stop receiving */
};

struct uring {
	struct io_uring ring;
	struct io_uring_buf_ring *buffer_ring;
	char *buffer;
	uint16_t length[BUFFERS];
	int16_t next[BUFFERS];
	struct descriptor *fd;
	int fds;
};

/* The error with which the kernel has refused a ring; 0: it has not. */
static atomic_int refused;

static const char *mechanism_name(void) {
	static _Thread_local char name[128];
	int error = atomic_load(&refused);
	if (!error) return "uring";
	snprintf(name, sizeof name, "%s, since the kernel refuses io_uring: %s", io_epoll.name(), strerror(error));
	return name;
}

/* --- buffers --- */

static void give(struct uring *u, int buffer) {
	io_uring_buf_ring_add(u->buffer_ring, u->buffer + (size_t)buffer * BUFFER_BYTES, BUFFER_BYTES, (uint16_t)buffer,
						  io_uring_buf_ring_mask(BUFFERS), 0);
	io_uring_buf_ring_advance(u->buffer_ring, 1);
}

static int make_buffers(struct uring *u) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (posix_memalign((void **)&u->buffer_ring, page, BUFFERS * sizeof(struct io_uring_buf)) != 0) return -ENOMEM;
	u->buffer = malloc((size_t)BUFFERS * BUFFER_BYTES);
	if (!u->buffer) return -ENOMEM;
	io_uring_buf_ring_init(u->buffer_ring);
	struct io_uring_buf_reg registration = {
		.ring_addr = (uint64_t)(uintptr_t)u->buffer_ring, .ring_entries = BUFFERS, .bgid = BUFFER_GROUP};
	int error = io_uring_register_buf_ring(&u->ring, &registration, 0);
	for (int i = 0; !error && i < BUFFERS; i++) give(u, i);
	return error;
}

static void append(struct uring *u, struct descriptor *d, int buffer, int length) {
	u->length[buffer] = (uint16_t)length;
	u->next[buffer] = -1;
	if (d->first == -1) d->first = (int16_t)buffer;
	else u->next[d->last] = (int16_t)buffer;
	d->last = (int16_t)buffer;
}

/* Gives the first buffer back to the kernel. */
static void drop_first(struct uring *u, struct descriptor *d) {
	int buffer = d->first;
	d->first = u->next[buffer];
	d->used = 0;
	give(u, buffer);
}

/* --- the table of descriptors --- */

static struct descriptor *descriptor_of(struct uring *u, int fd) {
	if (fd >= u->fds) {
		int fds = u->fds ? u->fds : FDS_MINIMUM;
		while (fds <= fd) fds *= 2;
		struct descriptor *table = realloc(u->fd, (size_t)fds * sizeof *table);
		if (!table) return NULL;
		memset(table + u->fds, 0, (size_t)(fds - u->fds) * sizeof *table);
		for (int i = u->fds; i < fds; i++) table[i].first = -1;
		u->fd = table;
		u->fds = fds;
	}
	return &u->fd[fd];
}

/* --- entries --- */

static uint64_t name_of(int fd, const struct descriptor *d, enum purpose purpose) {
	return (uint64_t)d->generation << 32 | (uint64_t)fd << 2 | purpose;
}

static enum purpose purpose_of(uint64_t name) { return name & 3; }
static int fd_of(uint64_t name) { return (int)((name & UINT32_MAX) >> 2); }

static struct io_uring_sqe *new_entry(struct uring *u) {
	struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);
	if (!e && io_uring_submit(&u->ring) >= 0) e = io_uring_get_sqe(&u->ring);
	return e;
}

static int arm(struct uring *u, int fd, struct descriptor *d, enum purpose purpose) {
	if (d->armed & 1 << purpose) return 0;
	struct io_uring_sqe *e = new_entry(u);
	if (!e) {
		errno = ENOMEM;
		return -1;
	}
	if (purpose == RECEIVE) {
		io_uring_prep_recv_multishot(e, fd, NULL, 0, 0);
		e->flags |= IOSQE_BUFFER_SELECT;
		e->buf_group = BUFFER_GROUP;
	} else if (purpose == POLL_WRITE) {
		/* a poll for one event would also end with EPOLLRDHUP, which the kernel adds, although there is no room */
		io_uring_prep_poll_multishot(e, fd, EPOLLOUT | EPOLLET);
	} else {
		io_uring_prep_poll_add(e, fd, EPOLLIN | EPOLLRDHUP);
	}
	e->user_data = name_of(fd, d, purpose);
	d->armed |= (uint8_t)(1 << purpose);
	return 0;
}

static bool cancel(struct uring *u, int fd, const struct descriptor *d, enum purpose purpose) {
	struct io_uring_sqe *e = d->armed & 1 << purpose ? new_entry(u) : NULL;
	if (!e) return false;
	io_uring_prep_cancel64(e, name_of(fd, d, purpose), 0);
	e->user_data = CANCEL;
	return true;
}

/* Turns the entries of a descriptor that the kernel has not taken yet into ones that do nothing: the number may have
 * another owner by the time it takes them. */
static void withdraw(struct uring *u, int fd) {
	const struct io_uring_sq *sq = &u->ring.sq;
	for (unsigned left = io_uring_sq_ready(&u->ring); left; left--) {
		struct io_uring_sqe *e = &sq->sqes[(sq->sqe_tail - left) & sq->ring_mask];
		const uint64_t name = e->user_data;
		if (purpose_of(name) == CANCEL || fd_of(name) != fd) continue;
		io_uring_prep_cancel64(e, name, 0);
		e->flags = 0;
		e->user_data = CANCEL;
	}
}

/* --- the mechanism --- */

/* Has the kernel refuse all operations that are not used here, since seccomp(2) does not see those of a ring. Then
 * enables the ring. */
static int restrict_ring(struct io_uring *ring) {
	static const uint8_t operations[] = {IORING_OP_POLL_ADD, IORING_OP_RECV, IORING_OP_ASYNC_CANCEL};
	enum { OPERATIONS = sizeof operations };
	struct io_uring_restriction allowed[OPERATIONS + 1] = {
		{.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = IOSQE_BUFFER_SELECT}};
	for (int i = 0; i < OPERATIONS; i++)
		allowed[1 + i] = (struct io_uring_restriction){.opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = operations[i]};
	/* liburing has functions for both, but its shared library does not export them */
	int error = io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_RESTRICTIONS, allowed, OPERATIONS + 1);
	return error ? error : io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

static int make_ring(struct uring *u) {
	struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE |
										 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_R_DISABLED,
								.cq_entries = COMPLETIONS};
	int error = io_uring_queue_init_params(ENTRIES, &u->ring, &p);
	if (error) return error;
	error = make_buffers(u);
	if (!error) error = restrict_ring(&u->ring);
	if (error) io_uring_queue_exit(&u->ring);
	return error;
}

static void uring_free(struct uring *u) {
	free(u->buffer_ring);
	free(u->buffer);
	free(u->fd);
	free(u);
}

static int prepare(io_loop *loop) {
	struct uring *u = calloc(1, sizeof *u);
	if (!u) return -1;
	int error = -make_ring(u);
	if (!error) {
		loop->mech = u;
		return 0;
	}
	uring_free(u);
	atomic_store(&refused, error);
	loop->mechanism = &io_epoll;
	return io_epoll.init(loop);
}

static void release(io_loop *loop) {
	struct uring *u = loop->mech;
	if (!u) return;
	(void)io_uring_submit_and_get_events(&u->ring); /* so that cancelled entries do not keep their files open */
	io_uring_queue_exit(&u->ring);
	uring_free(u);
}

static int watch(io_loop *loop, int fd, enum io_direction direction) {
	struct uring *u = loop->mech;
	struct descriptor *d = descriptor_of(u, fd);
	if (!d) return -1;
	if (direction == IO_WRITE) return arm(u, fd, d, POLL_WRITE);
	if (d->armed & (1 << RECEIVE | 1 << POLL_READ)) return 0;
	bool receive = d->receives && !d->cannot_receive && !d->starved;
	d->starved = false;
	return arm(u, fd, d, receive ? RECEIVE : POLL_READ);
}

static void forget(io_loop *loop, int fd) {
	struct uring *u = loop->mech;
	if (fd >= u->fds) return;
	struct descriptor *d = &u->fd[fd];
	if (d->armed) withdraw(u, fd);
	for (enum purpose p = POLL_READ; p < CANCEL; p++) (void)cancel(u, fd, d, p);
	while (d->first != -1) drop_first(u, d);
	*d = (struct descriptor){.generation = d->generation + 1, .first = -1};
}

static void received(io_loop *loop, int fd, struct descriptor *d, const struct io_uring_cqe *c) {
	int result = c->res;
	struct uring *u = loop->mech;
	if (result > 0) {
		append(u, d, (int)(c->flags >> IORING_CQE_BUFFER_SHIFT), result);
		io_ready(loop, fd, IO_CAN_READ);
		if (loop->entry[fd].want & IO_CAN_READ || d->cancelled) return;
		d->cancelled = cancel(u, fd, d, RECEIVE); /* a connection that is not read must not use up the buffers */
		return;
	}
	if (result == 0) d->ended = true;
	else if (result == -ENOTSOCK || result == -EOPNOTSUPP) d->cannot_receive = true;
	else if (result == -ENOBUFS) d->starved = true;
	else if (result != -ECANCELED) d->error = (uint16_t)-result;
	io_ready(loop, fd, d->ended || d->error ? IO_HANGUP : IO_CAN_READ);
}

/* Returns the set for io_ready(). */
static unsigned can_of(unsigned events) {
	unsigned can = events & EPOLLIN ? IO_CAN_READ : 0;
	if (events & EPOLLOUT) can |= IO_CAN_WRITE;
	if (events & EPOLLRDHUP) can |= IO_HANGUP;
	if (events & (EPOLLHUP | EPOLLERR)) can |= IO_HANGUP | IO_CAN_WRITE;
	return can;
}

static void handle(io_loop *loop, const struct io_uring_cqe *c) {
	struct uring *u = loop->mech;
	enum purpose purpose = purpose_of(c->user_data);
	if (purpose == CANCEL) return;
	int fd = fd_of(c->user_data);
	struct descriptor *d = &u->fd[fd];
	if (d->generation != c->user_data >> 32) {
		if (c->flags & IORING_CQE_F_BUFFER) give(u, (int)(c->flags >> IORING_CQE_BUFFER_SHIFT));
		return;
	}
	if (!(c->flags & IORING_CQE_F_MORE)) {
		d->armed &= (uint8_t) ~(1 << purpose);
		if (purpose == RECEIVE) d->cancelled = false;
	}
	if (purpose == RECEIVE) received(loop, fd, d, c);
	else if (c->res < 0) io_ready(loop, fd, IO_CAN_READ | IO_CAN_WRITE); /* the next call meets the error */
	else io_ready(loop, fd, can_of((unsigned)c->res));
}

/* Handles the completions in the ring. Returns how many there were. */
static unsigned handle_all(io_loop *loop) {
	struct uring *u = loop->mech;
	struct io_uring_cqe *c;
	unsigned head, count = 0;
	io_uring_for_each_cqe(&u->ring, head, c) {
		handle(loop, c);
		count++;
	}
	io_uring_cq_advance(&u->ring, count);
	return count;
}

/* Handles all completions, also those that the kernel kept back because the ring was full. */
static void handle_kept(io_loop *loop) {
	struct uring *u = loop->mech;
	do (void)handle_all(loop);
	while (io_uring_cq_has_overflow(&u->ring) && io_uring_get_events(&u->ring) >= 0);
}

/* Returns whether everything received has been read, and more may come. */
static bool drained(const struct descriptor *d) { return d->first == -1 && !d->ended && !d->error; }

static bool received_by_ring(io_loop *loop, int fd, void *buffer, size_t length, ssize_t *result) {
	struct uring *u = loop->mech;
	struct descriptor *d = descriptor_of(u, fd);
	if (!d) return false;
	d->receives = true;
	if (drained(d) && d->armed & 1 << RECEIVE) handle_kept(loop);
	/* bytes that the ring has not received are in the socket: io_tryread() reads them */
	if (drained(d)) return false;
	size_t copied = 0;
	while (d->first != -1 && copied < length) {
		size_t n = (size_t)u->length[d->first] - d->used;
		if (n > length - copied) n = length - copied;
		memcpy((char *)buffer + copied, u->buffer + (size_t)d->first * BUFFER_BYTES + d->used, n);
		copied += n;
		d->used = (uint16_t)(d->used + n);
		if (d->used == u->length[d->first]) drop_first(u, d);
	}
	*result = copied ? (ssize_t)copied : d->error ? -1 : 0;
	if (!copied) errno = d->error;
	/* as after any short read; if it cannot be watched now, the next read notices */
	else if (copied < length && drained(d) && io_unready(loop, fd, IO_READ)) (void)watch(loop, fd, IO_READ);
	return true;
}

static int wait_for(io_loop *loop, int64_t timeout_ns) {
	struct uring *u = loop->mech;
	struct io_uring_cqe *c;
	struct __kernel_timespec limit = {.tv_sec = timeout_ns / IO_NS_PER_S, .tv_nsec = timeout_ns % IO_NS_PER_S};
	int result = timeout_ns == 0
					 ? io_uring_submit_and_get_events(&u->ring)
					 : io_uring_submit_and_wait_timeout(&u->ring, &c, 1, timeout_ns < 0 ? NULL : &limit, NULL);
	if (result < 0 && result != -ETIME && result != -EINTR && result != -EBUSY && result != -EAGAIN) {
		errno = -result;
		return -1;
	}
	return handle_all(loop) > 0; /* the kernel may post only some of the due completions (20 since Linux 6.13) */
}

const struct io_mechanism io_uring = {.name = mechanism_name,
									  .init = prepare,
									  .free = release,
									  .watch = watch,
									  .forget = forget,
									  .wait = wait_for,
									  .received = received_by_ring};
