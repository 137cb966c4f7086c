/* network.c - see network.h. */
#include "tests/quic/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/quic/require.h"

enum { FIRST_PORT = 10000 };

struct network_sums network_sums;

static int64_t now_ns = INT64_C(1000000000000);
static struct packet *first; /* in the order of their arrival */
static struct fate (*decide)(bool to_server, unsigned number);
static unsigned sent;
static bool (*is_of_server)(int fd);
static void (*change_message)(uint8_t *message, size_t *length);
static bool is_full;

/* --- the clock --- */

int64_t network_now_ns(void) { return now_ns; }

void network_set_now(int64_t ns) {
	require(ns >= now_ns);
	now_ns = ns;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
	if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, t);
	*t = (struct timespec){.tv_sec = now_ns / 1000000000, .tv_nsec = now_ns % 1000000000};
	return 0;
}

/* --- datagrams --- */

void network_open(bool (*of_server)(int fd)) {
	is_of_server = of_server;
	change_message = NULL;
	decide = NULL;
	sent = 0;
	is_full = false;
	network_sums = (struct network_sums){0};
}

void network_close(void) {
	for (struct packet *p; (p = first);) {
		first = p->next;
		free(p);
	}
	is_of_server = NULL;
}

void network_set_fate(struct fate (*fate)(bool to_server, unsigned number)) { decide = fate; }

void network_set_change(void (*change)(uint8_t *message, size_t *length)) { change_message = change; }

void network_fill(bool full) { is_full = full; }

union io_address network_client(unsigned number) {
	union io_address a = {.ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(FIRST_PORT + number))}};
	a.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
	return a;
}

union io_address network_server(void) {
	union io_address a = {.ipv4 = {.sin_family = AF_INET}};
	a.ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void put(const struct packet *template, const void *bytes, int64_t delay_ns) {
	struct packet **at = &first, *p = malloc(sizeof *p + template->length);
	require(p);
	*p = *template;
	memcpy(p->bytes, bytes, p->length);
	p->at_ns = now_ns + delay_ns;
	while (*at && (*at)->at_ns <= p->at_ns) at = &(*at)->next;
	p->next = *at;
	*at = p;
}

static void send_one(bool to_server, const union io_address *client, const void *bytes, size_t length, uint8_t ecn) {
	struct fate fate = {.copies = 1, .delay_ms = NETWORK_DELAY_MS};
	struct packet p = {.to_server = to_server, .client = *client, .ecn = ecn, .length = length};
	require(length && length <= NETWORK_DATAGRAM);
	network_sums.datagrams[to_server]++;
	network_sums.bytes[to_server] += length;
	network_sums.marked[to_server] += ecn == ECN_ECT_0;
	if (decide) fate = decide(to_server, sent);
	sent++;
	if (fate.marked && p.ecn) p.ecn = ECN_CE;
	for (unsigned i = 0; i < fate.copies; i++) put(&p, bytes, (fate.delay_ms + (int64_t)i) * 1000000);
}

void network_send(const union io_address *client, const void *bytes, size_t length, uint8_t ecn) {
	send_one(true, client, bytes, length, ecn);
}

int64_t network_next_ns(void) { return first ? first->at_ns : INT64_MAX; }

static struct packet *take(bool to_server) {
	for (struct packet **at = &first, *p; (p = *at) && p->at_ns <= now_ns; at = &p->next) {
		if (p->to_server != to_server) continue;
		*at = p->next;
		return p;
	}
	return NULL;
}

bool network_has_arrived(void) {
	for (const struct packet *p = first; p && p->at_ns <= now_ns; p = p->next)
		if (p->to_server) return true;
	return false;
}

struct packet *network_take(void) {
	return take(false);
}

/* --- the calls of the server --- */

static int number_in(const struct cmsghdr *c) {
	int number = 0;
	memcpy(&number, CMSG_DATA(c), sizeof number);
	return number;
}

/* Returns whether a datagram of the server's socket is to that itself. */
static bool is_to_server(int fd, const union io_address *to) {
	union io_address own;
	socklen_t length = sizeof own;
	require(getsockname(fd, &own.any, &length) == 0);
	return to->ipv4.sin_port == own.ipv4.sin_port;
}

/* Sends a message that is not a datagram. */
static ssize_t pass_message(int fd, const struct msghdr *m, int flags) {
	static uint8_t message[NETWORK_MESSAGE];
	struct iovec all = {.iov_base = message};
	struct msghdr copy = *m;
	if (!change_message) return syscall(SYS_sendmsg, fd, m, flags);
	for (size_t i = 0; i < m->msg_iovlen; i++) {
		require(m->msg_iov[i].iov_len <= sizeof message - all.iov_len);
		memcpy(message + all.iov_len, m->msg_iov[i].iov_base, m->msg_iov[i].iov_len);
		all.iov_len += m->msg_iov[i].iov_len;
	}
	change_message(message, &all.iov_len);
	copy.msg_iov = &all;
	copy.msg_iovlen = 1;
	return syscall(SYS_sendmsg, fd, &copy, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
	struct msghdr copy = *m;
	union io_address client;
	uint16_t segment = 0;
	uint8_t ecn = 0;
	if (!is_of_server || !is_of_server(fd)) return pass_message(fd, m, flags);
	errno = EAFNOSUPPORT;
	if (m->msg_namelen != sizeof client.ipv4) return -1;
	if (is_full) {
		errno = EAGAIN;
		return -1;
	}
	require(m->msg_iovlen == 1);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) memcpy(&segment, CMSG_DATA(c), sizeof segment);
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ecn = (uint8_t)number_in(c);
	}
	network_sums.calls++;
	memcpy(&client.ipv4, m->msg_name, sizeof client.ipv4);
	const uint8_t *at = m->msg_iov->iov_base;
	const size_t length = m->msg_iov->iov_len, step = segment ? segment : length;
	const bool to_server = is_to_server(fd, &client);
	for (size_t done = 0; done < length; done += step)
		send_one(to_server, &client, at + done, length - done < step ? length - done : step, ecn);
	return (ssize_t)length;
}

static struct cmsghdr *append(struct msghdr *m, int type, const void *data, size_t length) {
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);
	*c = (struct cmsghdr){.cmsg_level = IPPROTO_IP, .cmsg_type = type, .cmsg_len = CMSG_LEN(length)};
	memcpy(CMSG_DATA(c), data, length);
	m->msg_controllen += CMSG_SPACE(length);
	return c;
}

static unsigned receive_one(struct msghdr *m, const struct packet *p) {
	const struct in_pktinfo info = {.ipi_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int tos = p->ecn;
	require(m->msg_iov->iov_len >= p->length && m->msg_namelen >= sizeof p->client.ipv4);
	memcpy(m->msg_iov->iov_base, p->bytes, p->length);
	memcpy(m->msg_name, &p->client.ipv4, sizeof p->client.ipv4);
	m->msg_namelen = sizeof p->client.ipv4;
	m->msg_flags = 0;
	m->msg_controllen = 0;
	append(m, IP_PKTINFO, &info, sizeof info);
	append(m, IP_TOS, &tos, sizeof tos);
	return (unsigned)p->length;
}

int recvmmsg(int fd, struct mmsghdr *m, unsigned most, int flags, struct timespec *limit) {
	unsigned n = 0;
	if (!is_of_server || !is_of_server(fd)) return (int)syscall(SYS_recvmmsg, fd, m, most, flags, limit);
	for (struct packet *p; n < most && (p = take(true)); n++) {
		m[n].msg_len = receive_one(&m[n].msg_hdr, p);
		free(p);
	}
	if (n) return (int)n;
	errno = EAGAIN;
	return -1;
}
