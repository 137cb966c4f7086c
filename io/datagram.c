/* datagram.c - see datagram.h. */
#ifdef __APPLE__
#define __APPLE_USE_RFC_3542 /* for IPV6_PKTINFO; NOLINT(bugprone-reserved-identifier) */
#endif
#include "io/datagram.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "io/internal.h"

enum { ECN_BITS = 3 };

/* Room for the control messages of a datagram: its address, its marks, and its segments. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_addr) * 3) +
			   2 * CMSG_SPACE(sizeof(int))];
};

struct io_received {
	struct io_datagrams got[IO_DATAGRAM_BATCH];
	union control control[IO_DATAGRAM_BATCH];
	char bytes[IO_DATAGRAM_BATCH][IO_DATAGRAM_ROOM];
};

static void set(int fd, int level, int name, int value) { (void)setsockopt(fd, level, name, &value, sizeof value); }

/* Options of a family that the socket does not have fail, and do no harm; an IPv6 socket may have both. */
void io_datagram_socket(int fd) {
	set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
#ifdef IP_PKTINFO
	set(fd, IPPROTO_IP, IP_PKTINFO, 1);
#elif defined IP_RECVDSTADDR
	set(fd, IPPROTO_IP, IP_RECVDSTADDR, 1);
#endif
#ifdef IP_RECVTOS
	set(fd, IPPROTO_IP, IP_RECVTOS, 1);
#endif
#ifdef IP_PMTUDISC_PROBE
	set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IP_PMTUDISC_PROBE);
#else
#ifdef IP_DONTFRAG
	set(fd, IPPROTO_IP, IP_DONTFRAG, 1);
#endif
#ifdef IPV6_DONTFRAG
	set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
#endif
#endif
#ifdef UDP_GRO
	set(fd, IPPROTO_UDP, UDP_GRO, 1);
#endif
}

struct io_received *io_received_new(void) {
	return malloc(sizeof(struct io_received));
}

void io_received_free(struct io_received *received) { free(received); }

/* --- receiving --- */

static void note_control(struct io_datagrams *d, const struct cmsghdr *c) {
	const void *data = CMSG_DATA(c);
	int number = 0;
	if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
		struct in6_pktinfo info;
		memcpy(&info, data, sizeof info);
		d->local.ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = info.ipi6_addr};
		if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) d->local.ipv6.sin6_scope_id = info.ipi6_ifindex;
		return;
	}
#ifdef IP_PKTINFO
	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO && d->peer.any.sa_family == AF_INET) {
		struct in_pktinfo info;
		memcpy(&info, data, sizeof info);
		d->local.ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = info.ipi_addr};
		return;
	}
#elif defined IP_RECVDSTADDR
	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVDSTADDR) {
		d->local.ipv4 = (struct sockaddr_in){.sin_family = AF_INET};
		memcpy(&d->local.ipv4.sin_addr, data, sizeof d->local.ipv4.sin_addr);
		return;
	}
#endif
	/* an int, or a byte */
	if (c->cmsg_len >= CMSG_LEN(sizeof number)) memcpy(&number, data, sizeof number);
	else number = *(const unsigned char *)data;
	if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) d->ecn = number & ECN_BITS;
#ifdef IP_RECVTOS
	if (c->cmsg_level == IPPROTO_IP && (c->cmsg_type == IP_TOS || c->cmsg_type == IP_RECVTOS))
		d->ecn = number & ECN_BITS;
#endif
#ifdef UDP_GRO
	if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO && number > 0) d->segment = (size_t)number;
#endif
}

/* Fills in what a message says. Returns whether it is whole. */
static bool note_message(struct io_datagrams *d, struct msghdr *m, const char *bytes, size_t length) {
	d->local.any.sa_family = AF_UNSPEC;
	d->ecn = 0;
	d->bytes = bytes;
	d->length = d->segment = length;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) note_control(d, c);
	return !(m->msg_flags & MSG_TRUNC) && length;
}

static struct msghdr message_for(struct io_received *r, struct iovec *iov, int i) {
	*iov = (struct iovec){.iov_base = r->bytes[i], .iov_len = IO_DATAGRAM_ROOM};
	return (struct msghdr){.msg_name = &r->got[i].peer,
						   .msg_namelen = sizeof r->got[i].peer,
						   .msg_iov = iov,
						   .msg_iovlen = 1,
						   .msg_control = &r->control[i],
						   .msg_controllen = sizeof r->control[i]};
}

/* Returns whether an error is that of a datagram which was sent before. */
static bool is_of_another(int error) {
	return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE ||
		   error == EPERM || error == EINTR;
}

#ifdef __linux__

static int receive(int fd, struct io_received *r) {
	struct mmsghdr message[IO_DATAGRAM_BATCH];
	struct iovec iov[IO_DATAGRAM_BATCH];
	int whole = 0;
	for (int i = 0; i < IO_DATAGRAM_BATCH; i++) message[i].msg_hdr = message_for(r, &iov[i], i);
	const int n = recvmmsg(fd, message, IO_DATAGRAM_BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		if (!note_message(&r->got[i], &message[i].msg_hdr, r->bytes[i], message[i].msg_len)) continue;
		if (whole < i) r->got[whole] = r->got[i];
		whole++;
	}
	return n == -1 ? -1 : whole;
}

#else

static int receive(int fd, struct io_received *r) {
	int n = 0;
	while (n < IO_DATAGRAM_BATCH) {
		struct iovec iov;
		struct msghdr m = message_for(r, &iov, n);
		const ssize_t length = recvmsg(fd, &m, MSG_DONTWAIT);
		if (length == -1) return n ? n : -1;
		n += note_message(&r->got[n], &m, r->bytes[n], (size_t)length);
	}
	return n;
}

#endif

int io_receive(io_loop *loop, int fd, struct io_received *r, const struct io_datagrams **got) {
	int n;
	do n = receive(fd, r);
	while (n == -1 && is_of_another(errno));
	*got = r->got;
	if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK) && io_eagain_read(loop, fd) == 0) errno = EAGAIN;
	return n;
}

/* --- sending --- */

/* Appends a control message. */
static void put_control(struct msghdr *m, int level, int type, const void *data, size_t length) {
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(c), data, length);
	m->msg_controllen += CMSG_SPACE(length);
}

static void put_local(struct msghdr *m, const union io_address *local) {
	if (local->any.sa_family == AF_INET6) {
		const struct in6_pktinfo info = {.ipi6_addr = local->ipv6.sin6_addr, .ipi6_ifindex = local->ipv6.sin6_scope_id};
		put_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
	}
#ifdef IP_PKTINFO
	if (local->any.sa_family == AF_INET) {
		const struct in_pktinfo info = {.ipi_spec_dst = local->ipv4.sin_addr};
		put_control(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
	}
#elif defined IP_SENDSRCADDR
	if (local->any.sa_family == AF_INET)
		put_control(m, IPPROTO_IP, IP_SENDSRCADDR, &local->ipv4.sin_addr, sizeof local->ipv4.sin_addr);
#endif
}

static void put_ecn(struct msghdr *m, const union io_address *peer, int ecn) {
	const bool mapped = peer->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&peer->ipv6.sin6_addr);
	if (!ecn) return;
	if (peer->any.sa_family == AF_INET6 && !mapped) put_control(m, IPPROTO_IPV6, IPV6_TCLASS, &ecn, sizeof ecn);
#ifdef IP_PKTINFO /* where IP_TOS may be a control message */
	else put_control(m, IPPROTO_IP, IP_TOS, &ecn, sizeof ecn);
#endif
}

static ssize_t send_message(int fd, const struct io_datagrams *d, const char *bytes, size_t length, size_t segment) {
	union control control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	struct msghdr m = {.msg_name = (void *)(uintptr_t)&d->peer,
					   .msg_namelen = io_address_length(&d->peer),
					   .msg_iov = &iov,
					   .msg_iovlen = 1,
					   .msg_control = &control};
	memset(&control, 0, sizeof control);
	put_local(&m, &d->local);
	put_ecn(&m, &d->peer, d->ecn);
#ifdef UDP_SEGMENT
	const uint16_t each = (uint16_t)segment;
	if (length > segment) put_control(&m, IPPROTO_UDP, UDP_SEGMENT, &each, sizeof each);
#else
	(void)segment;
#endif
	if (!m.msg_controllen) m.msg_control = NULL;
	ssize_t n;
	do n = sendmsg(fd, &m, MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	return n;
}

/* Sends datagrams in a call each. Returns as io_send(). */
static ssize_t send_each(int fd, const struct io_datagrams *d) {
	size_t sent = 0;
	while (sent < d->length) {
		const size_t length = d->length - sent < d->segment ? d->length - sent : d->segment;
		if (send_message(fd, d, d->bytes + sent, length, length) == -1) return sent ? (ssize_t)sent : -1;
		sent += length;
	}
	return (ssize_t)sent;
}

/* Returns whether an error says that the system, or the network device, has no segments. */
static bool lacks_segments(int error) { return error == EINVAL || error == EIO || error == EOPNOTSUPP; }

ssize_t io_send(io_loop *loop, int fd, const struct io_datagrams *d) {
#ifdef UDP_SEGMENT
	const bool segments = d->length > d->segment && !loop->no_segments;
#else
	const bool segments = false;
#endif
	ssize_t n = segments ? send_message(fd, d, d->bytes, d->length, d->segment) : send_each(fd, d);
	if (n == -1 && segments && lacks_segments(errno)) {
		loop->no_segments = true;
		n = send_each(fd, d);
	}
	if (n == -1 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) && io_eagain_write(loop, fd) == 0)
		errno = EAGAIN;
	return n;
}
