/* smallest.c - the smallest programs that answer requests with epoll(7), to measure what a request costs the kernel, as
 * a limit for comparing servers. They do not parse requests: whatever ends in an empty line is one, and gets the same
 * answer from memory.
 *
 *     smallest [-1] [-l] PORT FILE
 *
 * -1: closes the connection after the first answer, and announces this in it.
 *
 * -l: lazy: connections come with their requests (TCP_DEFER_ACCEPT), and are added to epoll(7) only when they have to
 * wait.
 *
 * It listens on 127.0.0.1; the answer has the content of FILE. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/usage.h"

enum { FDS_MAX = 20000, EVENTS = 256, BATCH = 64, REQUEST_MAX = 32 * 1024, HEAD_MAX = 256, DEFER_S = 10 };

static struct {
	int epoll, listener;
	bool once, lazy;
	char *answer;
	size_t length;
	size_t left[FDS_MAX];  /* bytes of the current answer that were not sent */
	bool watched[FDS_MAX]; /* added to epoll(7), for both directions, edge-triggered */
} s;

__attribute__((noreturn)) static void fail(const char *call) {
	fprintf(stderr, "smallest: %s: %s\n", call, strerror(errno));
	exit(1);
}

static void watch(int fd) {
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
	if (!s.watched[fd] && epoll_ctl(s.epoll, EPOLL_CTL_ADD, fd, &event) == -1) fail("epoll_ctl");
	s.watched[fd] = true;
}

static void end(int fd) {
	close(fd);
	s.watched[fd] = false;
	s.left[fd] = 0;
}

/* Sends as much of the answer as the socket takes. Returns 1 if that was all, 0 if not, or -1 if the connection is
 * gone. */
static int answer(int fd) {
	while (s.left[fd]) {
		ssize_t n = send(fd, s.answer + s.length - s.left[fd], s.left[fd], MSG_NOSIGNAL);
		if (n == -1) return errno == EAGAIN ? 0 : -1;
		s.left[fd] -= (size_t)n;
	}
	return 1;
}

/* Handles an event, or a new connection. */
static void serve(int fd) {
	static char request[REQUEST_MAX];
	if (!s.left[fd]) {
		ssize_t n = recv(fd, request, sizeof request, 0);
		if (n == -1 && errno == EAGAIN) {
			watch(fd);
			return;
		}
		if (n < 4 || memcmp(request + n - 4, "\r\n\r\n", 4) != 0) { /* an incomplete request is not supported, either */
			end(fd);
			return;
		}
		s.left[fd] = s.length;
	}
	int result = answer(fd);
	if (result == -1 || (result == 1 && s.once)) end(fd);
	else watch(fd);
}

/* Accepts some connections, then serves or watches each of them. */
static void accept_some(void) {
	int fresh[BATCH], count = 0;
	while (count < BATCH && (fresh[count] = accept4(s.listener, NULL, NULL, SOCK_NONBLOCK)) != -1) {
		if (fresh[count] >= FDS_MAX) close(fresh[count]);
		else count++;
	}
	for (int i = 0; i < count; i++) {
		int fd = fresh[i];
		if (s.lazy) serve(fd);
		else watch(fd);
	}
}

static void make_answer(const char *path) {
	struct stat st;
	FILE *in = fopen(path, "r");
	if (!in || fstat(fileno(in), &st) == -1) fail(path);
	s.answer = malloc(HEAD_MAX + (size_t)st.st_size);
	if (!s.answer) fail("malloc");
	s.length = (size_t)snprintf(s.answer, HEAD_MAX,
								"HTTP/1.1 200 OK\r\nServer: smallest\r\nContent-Length: %lld\r\n%s"
								"Content-Type: application/octet-stream\r\n\r\n",
								(long long)st.st_size, s.once ? "Connection: close\r\n" : "");
	s.length += fread(s.answer + s.length, 1, (size_t)st.st_size, in);
	fclose(in);
}

static void listen_on(uint16_t port) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1, defer_s = DEFER_S;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s.listener == -1) fail("socket");
	setsockopt(s.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(s.listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (s.lazy) setsockopt(s.listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof defer_s);
	if (bind(s.listener, (struct sockaddr *)&address, sizeof address) == -1) fail("bind");
	if (listen(s.listener, INT_MAX) == -1) fail("listen");
}

int main(int argc, char **argv) {
	usage_program = "smallest";
	for (int c; (c = getopt(argc, argv, ":1l")) != -1;) {
		if (c == '1') s.once = true;
		else if (c == 'l') s.lazy = true;
		else usage_bad_option(c, argv);
	}
	if (argc - optind != 2) usage_refuse("usage: smallest [-1] [-l] PORT FILE");
	make_answer(argv[optind + 1]);
	listen_on((uint16_t)usage_whole_number("PORT", argv[optind], 1, 65535));
	s.epoll = epoll_create1(0);
	struct epoll_event event[EVENTS] = {{.events = EPOLLIN, .data.fd = s.listener}};
	if (s.epoll == -1 || epoll_ctl(s.epoll, EPOLL_CTL_ADD, s.listener, &event[0]) == -1) fail("epoll");
	while (true) {
		int n = epoll_wait(s.epoll, event, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			if (event[i].data.fd == s.listener) accept_some();
			else serve(event[i].data.fd);
		}
	}
}
