/* queued.c - measures how many bytes the kernel holds of those that the connections of a port have sent (SIOCOUTQ):
 * those under way and those not yet sent.
 *
 *     queued PORT MICROSECONDS
 *
 * Samples at intervals until SIGTERM. Then prints how many samples had bytes queued and, in bytes of all connections,
 * the mean of these samples and the maximum: first of all queued bytes, then of the unsent ones. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024, MICROSECONDS_MAX = 999999 };
enum { ESTABLISHED = 1, FIN_WAIT_1 = 4, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 }; /* states that may have a queue */
#define STATES (1U << ESTABLISHED | 1U << FIN_WAIT_1 | 1U << CLOSE_WAIT | 1U << LAST_ACK | 1U << CLOSING)

struct bytes {
	uint64_t queued, unsent;
};

static volatile sig_atomic_t ended;

static void end(int signal) {
	(void)signal;
	ended = 1;
}

__attribute__((noreturn)) static void fail(const char *call) {
	fprintf(stderr, "queued: %s: %s\n", call, strerror(errno));
	exit(1);
}

static void ask(int fd) {
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 request;
	} message = {.head = {.nlmsg_len = sizeof message,
						  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
						  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
				 .request = {.sdiag_family = AF_INET,
							 .sdiag_protocol = IPPROTO_TCP,
							 .idiag_ext = 1U << (INET_DIAG_INFO - 1),
							 .idiag_states = STATES}};
	if (send(fd, &message, sizeof message, 0) == -1) fail("send");
}

static uint32_t unsent(const struct inet_diag_msg *socket, size_t length) {
	const struct rtattr *at = (const struct rtattr *)(socket + 1);
	struct tcp_info info = {0};
	for (length -= sizeof *socket; RTA_OK(at, length); at = RTA_NEXT(at, length))
		if (at->rta_type == INET_DIAG_INFO)
			memcpy(&info, RTA_DATA(at), RTA_PAYLOAD(at) < sizeof info ? RTA_PAYLOAD(at) : sizeof info);
	return info.tcpi_notsent_bytes;
}

/* Adds the sockets in a message of the kernel. Returns whether more messages follow. */
static bool add(int fd, uint16_t port, struct bytes *sum) {
	static _Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
	ssize_t n = recv(fd, answer, sizeof answer, 0);
	if (n == -1 && errno == EINTR) return true;
	if (n == -1) fail("recv");
	size_t length = (size_t)n;
	for (const struct nlmsghdr *m = (const void *)answer; NLMSG_OK(m, length); m = NLMSG_NEXT(m, length)) {
		if (m->nlmsg_type == NLMSG_DONE) return false;
		if (m->nlmsg_type == NLMSG_ERROR) {
			errno = -((const struct nlmsgerr *)NLMSG_DATA(m))->error;
			fail("the kernel's answer");
		}
		const struct inet_diag_msg *socket = NLMSG_DATA(m);
		if (ntohs(socket->id.idiag_sport) != port) continue;
		sum->queued += socket->idiag_wqueue;
		sum->unsent += unsent(socket, m->nlmsg_len - NLMSG_HDRLEN);
	}
	return true;
}

int main(int argc, char **argv) {
	long port = argc == 3 ? strtol(argv[1], NULL, 10) : 0, microseconds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	if (port < 1 || port > UINT16_MAX || microseconds < 1 || microseconds > MICROSECONDS_MAX) {
		fputs("usage: queued PORT MICROSECONDS\n", stderr);
		return 2;
	}
	const struct sigaction action = {.sa_handler = end};
	(void)sigaction(SIGTERM, &action, NULL);
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd == -1) fail("socket");
	const struct timespec interval = {.tv_nsec = microseconds * 1000};
	uint64_t times = 0;
	struct bytes all = {0}, most = {0};
	while (!ended) {
		struct bytes now = {0};
		ask(fd);
		while (add(fd, (uint16_t)port, &now)) {}
		times += now.queued > 0;
		all.queued += now.queued;
		all.unsent += now.unsent;
		if (now.queued > most.queued) most.queued = now.queued;
		if (now.unsent > most.unsent) most.unsent = now.unsent;
		(void)nanosleep(&interval, NULL);
	}
	const uint64_t divisor = times ? times : 1;
	printf("%llu %llu %llu %llu %llu\n", (unsigned long long)times, (unsigned long long)(all.queued / divisor),
		   (unsigned long long)most.queued, (unsigned long long)(all.unsent / divisor),
		   (unsigned long long)most.unsent);
	return 0;
}
