/* datagram.c - see datagram.h. Control messages carry what is not content: addresses, marks, and the length of
 * segments. */
#define __APPLE_USE_RFC_3542 /* macOS: IPV6_PKTINFO */
#include "io/datagram.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "io/internal.h"

enum { ECN_BITS = 3 };

/* As a control message, the type of service of IPv4 is a byte on some systems. */
#if defined __FreeBSD__ || defined __NetBSD__
typedef unsigned char tos_type;
#else
typedef int tos_type;
#endif

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 3 * CMSG_SPACE(sizeof(int))];
};

#ifdef __linux__
typedef struct mmsghdr message;
#else
typedef struct {
	struct msghdr msg_hdr;
	unsigned msg_len;
} message;
#endif

struct io_received {
	message message[IO_DATAGRAM_BATCH];
	struct iovec part[IO_DATAGRAM_BATCH];
	struct io_datagrams got[IO_DATAGRAM_BATCH];
	union control control[IO_DATAGRAM_BATCH];
	int used;    /* messages that have to be prepared again */
	int skipped; /* the error of the last call that was skipped first */
	char bytes[IO_DATAGRAM_BATCH][IO_DATAGRAM_ROOM];
};

/* --- options --- */

static void set(int fd, int level, int name, int value) { (void)setsockopt(fd, level, name, &value, sizeof value); }

void io_datagram_socket(int fd) {
	union io_address own = {0};
	socklen_t length = sizeof own;
	(void)getsockname(fd, &own.any, &length);
	if (own.any.sa_family == AF_INET6) { /* it may have datagrams of IPv4, too: they need the options of both */
		set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
#ifdef IPV6_PMTUDISC_PROBE
		set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
#elif defined IPV6_DONTFRAG
		set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
#endif
	} else {
#ifdef IP_RECVDSTADDR
		set(fd, IPPROTO_IP, IP_RECVDSTADDR, 1);
#else
		set(fd, IPPROTO_IP, IP_PKTINFO, 1);
#endif
	}
#ifdef IP_RECVTOS
	set(fd, IPPROTO_IP, IP_RECVTOS, 1);
#endif
#ifdef IP_PMTUDISC_PROBE
	set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
#elif defined IP_DONTFRAG
	set(fd, IPPROTO_IP, IP_DONTFRAG, 1);
#endif
#ifdef UDP_GRO
	set(fd, IPPROTO_UDP, UDP_GRO, 1);
#endif
}

/* --- receiving --- */

static void prepare(struct io_received *r, int i) {
	r->part[i] = (struct iovec){.iov_base = r->bytes[i], .iov_len = IO_DATAGRAM_ROOM};
	r->message[i].msg_hdr = (struct msghdr){.msg_name = &r->got[i].peer,
											.msg_namelen = sizeof r->got[i].peer,
											.msg_iov = &r->part[i],
											.msg_iovlen = 1,
											.msg_control = &r->control[i],
											.msg_controllen = sizeof r->control[i]};
}

struct io_received *io_received_new(void) {
	struct io_received *r = malloc(sizeof *r);
	if (r) r->used = IO_DATAGRAM_BATCH;
	return r;
}

void io_received_free(struct io_received *received) { free(received); }

static int number_in(const struct cmsghdr *c) {
	int number;
	if (c->cmsg_len < CMSG_LEN(sizeof number)) return *(const unsigned char *)CMSG_DATA(c);
	memcpy(&number, CMSG_DATA(c), sizeof number);
	return number;
}

static void note_ipv6(struct io_datagrams *d, const struct cmsghdr *c) {
	struct in6_pktinfo info;
	if (c->cmsg_type == IPV6_TCLASS) d->ecn = number_in(c) & ECN_BITS;
	if (c->cmsg_type != IPV6_PKTINFO) return;
	memcpy(&info, CMSG_DATA(c), sizeof info);
	d->local.ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = info.ipi6_addr};
	if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) d->local.ipv6.sin6_scope_id = info.ipi6_ifindex;
}

static void note_ipv4(struct io_datagrams *d, const struct cmsghdr *c) {
	struct in_addr address;
#ifdef IP_RECVTOS
	if (c->cmsg_type == IP_TOS || c->cmsg_type == IP_RECVTOS) d->ecn = number_in(c) & ECN_BITS;
#endif
#ifdef IP_RECVDSTADDR
	if (c->cmsg_type != IP_RECVDSTADDR) return;
	memcpy(&address, CMSG_DATA(c), sizeof address);
#else
	struct in_pktinfo info;
	if (c->cmsg_type != IP_PKTINFO) return;
	memcpy(&info, CMSG_DATA(c), sizeof info);
	address = info.ipi_addr;
#endif
	d->local.ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = address};
}

/* Fills in what a message says. */
static void note(struct io_datagrams *d, message *m, const char *bytes) {
	d->local.any.sa_family = AF_UNSPEC;
	d->ecn = 0;
	d->bytes = bytes;
	d->length = d->segment = m->msg_len;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c; c = CMSG_NXTHDR(&m->msg_hdr, c)) {
		if (c->cmsg_level == IPPROTO_IPV6) note_ipv6(d, c);
		else if (c->cmsg_level == IPPROTO_IP) note_ipv4(d, c);
#ifdef UDP_GRO
		else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) d->segment = (size_t)number_in(c);
#endif
	}
}

/* Returns whether an error may be that of a datagram which was sent before: a connected socket reports what ICMP said
 * with the next call, whichever that is. */
static bool is_of_another(int error) {
	switch (error) {
	case EACCES:
	case ECONNREFUSED:
	case EHOSTDOWN:
	case EHOSTUNREACH:
	case EINTR:
	case EMSGSIZE:
	case ENETUNREACH:
	case ENOPROTOOPT: return true;
	default: return false;
	}
}

/* Receives up to IO_DATAGRAM_BATCH messages. Returns their number, or -1 with errno. *empty: there are no more. */
#ifdef __linux__

static int receive(int fd, message *m, bool *empty) {
	const int n = recvmmsg(fd, m, IO_DATAGRAM_BATCH, MSG_DONTWAIT, NULL);
	*empty = n == -1 ? errno == EAGAIN : n < IO_DATAGRAM_BATCH; /* or there was an error, which is an event to come */
	return n;
}

#else

static int receive(int fd, message *m, bool *empty) {
	int n = 0;
	while (n < IO_DATAGRAM_BATCH) {
		const ssize_t length = recvmsg(fd, &m[n].msg_hdr, MSG_DONTWAIT);
		if (length == -1) break;
		m[n++].msg_len = (unsigned)length;
	}
	*empty = n < IO_DATAGRAM_BATCH && (errno == EAGAIN || errno == EWOULDBLOCK);
	return n ? n : -1;
}

#endif

int io_receive(io_loop *loop, int fd, struct io_received *r, const struct io_datagrams **got) {
	bool empty;
	int n, errors = 0, whole = 0;
	*got = r->got;
	loop->entry[fd].shared = true;
	while (r->used) prepare(r, --r->used);
	r->skipped = 0;
	while ((n = receive(fd, r->message, &empty)) == -1 && is_of_another(errno)) {
		if (!r->skipped) r->skipped = errno;
		if (++errors == IO_DATAGRAM_BATCH) break;
	}
	if (n == -1 && !empty) return is_of_another(errno) ? 0 : -1;
	for (int i = 0; i < n; i++) {
		if (r->message[i].msg_hdr.msg_flags & MSG_TRUNC || !r->message[i].msg_len) continue;
		if (whole < i) r->got[whole].peer = r->got[i].peer;
		note(&r->got[whole++], &r->message[i], r->bytes[i]);
	}
	if (n > 0) r->used = n;
	return empty ? (int)io_exhausted(loop, fd, IO_READ, n == -1 ? -1 : whole) : whole;
}

int io_skipped_error(const struct io_received *r) { return r->skipped; }

/* --- sending --- */

/* Appends a control message to those of m, which have room for it. */
static void append(struct msghdr *m, int level, int type, const void *data, size_t length) {
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(c), data, length);
	m->msg_controllen += CMSG_SPACE(length);
}

static void append_local(struct msghdr *m, const union io_address *local) {
	if (local->any.sa_family == AF_INET6) {
		const struct in6_pktinfo info = {.ipi6_addr = local->ipv6.sin6_addr, .ipi6_ifindex = local->ipv6.sin6_scope_id};
		append(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
	} else if (local->any.sa_family == AF_INET) {
#ifdef IP_SENDSRCADDR
		append(m, IPPROTO_IP, IP_SENDSRCADDR, &local->ipv4.sin_addr, sizeof local->ipv4.sin_addr);
#else
		const struct in_pktinfo info = {.ipi_spec_dst = local->ipv4.sin_addr};
		append(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
#endif
	}
}

static void append_ecn(struct msghdr *m, const union io_address *peer, int ecn) {
	const tos_type tos = (tos_type)ecn;
	if (!ecn) return;
	if (peer->any.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&peer->ipv6.sin6_addr))
		append(m, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof ecn);
	else append(m, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
}

/* Sends length bytes from offset on: one datagram, or with UDP_SEGMENT several. Returns whether it did; if not, errno
 * says why. */
static bool send_some(int fd, const struct io_datagrams *d, size_t offset, size_t length) {
	union control control = {0};
	struct iovec part = {.iov_base = (char *)d->bytes + offset, .iov_len = length};
	struct msghdr m = {.msg_name = (void *)&d->peer,
					   .msg_namelen = io_address_length(&d->peer),
					   .msg_iov = &part,
					   .msg_iovlen = 1,
					   .msg_control = &control};
	append_local(&m, &d->local);
	append_ecn(&m, &d->peer, d->ecn);
#ifdef UDP_SEGMENT
	const uint16_t segment = (uint16_t)d->segment;
	if (length > d->segment) append(&m, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
#endif
	if (!m.msg_controllen) m.msg_control = NULL;
	if (sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) != -1) return true;
	return is_of_another(errno) && sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) != -1;
}

/* Returns whether datagrams may be sent as segments. A kernel that does not know them would send one long datagram. */
static bool has_segments(io_loop *loop, int fd) {
#ifdef UDP_SEGMENT
	int segment;
	socklen_t length = sizeof segment;
	if (loop->segments == SEGMENTS_UNKNOWN)
		loop->segments =
			getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, &length) == 0 ? SEGMENTS_SENT : SEGMENTS_NONE;
	return loop->segments == SEGMENTS_SENT;
#else
	(void)loop, (void)fd;
	return false;
#endif
}

/* Sends datagrams in a call each. Returns the bytes sent, which are fewer than length if there was an error. */
static size_t send_each(int fd, const struct io_datagrams *d, size_t length) {
	size_t sent = 0;
	while (sent < length) {
		const size_t one = length - sent < d->segment ? length - sent : d->segment;
		if (!send_some(fd, d, sent, one)) break;
		sent += one;
	}
	return sent;
}

/* EINVAL may mean that the system has no segments, if each datagram alone can be sent: other reasons are an address
 * that is no longer local, and segments longer than the path allows. EIO: the route has none. */
static size_t send_segments(io_loop *loop, int fd, const struct io_datagrams *d, size_t length) {
	if (send_some(fd, d, 0, length)) return length;
	const int error = errno;
	if (error != EINVAL && error != EIO) return 0;
	const size_t sent = send_each(fd, d, length);
	if (sent && error == EINVAL) loop->segments = SEGMENTS_NONE;
	return sent;
}

/* Returns how many bytes one call may send. */
static size_t most_of(const struct io_datagrams *d) {
	size_t datagrams = IO_DATAGRAM_BYTES / d->segment;
	if (datagrams > IO_DATAGRAM_SEGMENTS) datagrams = IO_DATAGRAM_SEGMENTS;
	if (!datagrams) datagrams = 1; /* the kernel refuses it */
	return d->length < datagrams * d->segment ? d->length : datagrams * d->segment;
}

ssize_t io_send(io_loop *loop, int fd, const struct io_datagrams *d) {
	const size_t length = most_of(d);
	const bool segments = length > d->segment && has_segments(loop, fd);
	const size_t sent = segments ? send_segments(loop, fd, d, length) : send_each(fd, d, length);
	if (sent == length) return (ssize_t)sent;
	const ssize_t result = sent ? (ssize_t)sent : -1;
	return errno == EAGAIN || errno == EWOULDBLOCK ? io_exhausted(loop, fd, IO_WRITE, result) : result;
}
