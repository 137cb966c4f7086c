/* responder.c - the smallest FastCGI application and the smallest HTTP upstream that reads content, to which servers
 * pass requests while their cost is measured.
 *
 *     responder fcgi|http PORT BYTES PROCESSES
 *
 * Each process handles one connection on 127.0.0.1 at a time. Over FastCGI it reads a whole request, answers with BYTES
 * bytes, and closes the connection. Over HTTP it answers any number of requests, and reads as much content as
 * Content-Length says. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/usage.h"

enum {
	BUFFER = 64 * 1024,
	BYTES_MAX = 32 * 1024,
	ANSWER_MAX = BYTES_MAX + 256,
	HEADER = 8,
	STDIN = 5,
	STDOUT = 6,
	END_REQUEST = 3,
	PROCESSES_MAX = 256
};

static char answer[ANSWER_MAX];
static size_t answer_length;

__attribute__((noreturn)) static void fail(const char *call) {
	fprintf(stderr, "responder: %s: %s\n", call, strerror(errno));
	exit(1);
}

static bool send_answer(int fd) { return send(fd, answer, answer_length, MSG_NOSIGNAL) == (ssize_t)answer_length; }

/* Reads records up to the one that ends the content, and answers. */
static void answer_fcgi(int fd) {
	unsigned char buffer[BUFFER];
	size_t have = 0, at = 0;
	for (ssize_t n; (n = recv(fd, buffer + have, sizeof buffer - have, 0)) > 0;) {
		have += (size_t)n;
		while (have - at >= HEADER) {
			size_t length = (size_t)buffer[at + 4] << 8 | buffer[at + 5], whole = HEADER + length + buffer[at + 6];
			if (buffer[at + 1] == STDIN && length == 0) {
				(void)send_answer(fd);
				return;
			}
			if (have - at < whole) break;
			at += whole;
		}
		memmove(buffer, buffer + at, have - at);
		have -= at;
		at = 0;
		if (have == sizeof buffer) return;
	}
}

static void answer_http(int fd) {
	static char buffer[BUFFER];
	size_t have = 0;
	for (ssize_t n; (n = recv(fd, buffer + have, sizeof buffer - 1 - have, 0)) > 0;) {
		have += (size_t)n;
		buffer[have] = '\0';
		const char *end = strstr(buffer, "\r\n\r\n"), *field = strcasestr(buffer, "\r\ncontent-length:");
		if (!end) continue;
		uint64_t left = field && field < end ? strtoull(field + strlen("\r\ncontent-length:"), NULL, 10) : 0;
		uint64_t come = have - (size_t)(end + 4 - buffer);
		for (left -= come < left ? come : left; left && (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
			left -= (uint64_t)n;
		if (left || !send_answer(fd)) return;
		have = 0;
	}
}

static void put_record(unsigned type, const char *content, size_t length) {
	const char header[HEADER] = {1, (char)type, 0, 1, (char)(length >> 8), (char)length};
	memcpy(answer + answer_length, header, sizeof header);
	memcpy(answer + answer_length + HEADER, content, length);
	answer_length += HEADER + length;
}

static void make_answer(bool fcgi, size_t length) {
	static char content[ANSWER_MAX];
	memset(content, 'x', sizeof content);
	if (fcgi) {
		int head = snprintf(content, sizeof content, "Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", length);
		content[head] = 'x';
		put_record(STDOUT, content, (size_t)head + length);
		put_record(END_REQUEST, "\0\0\0\0\0\0\0\0", HEADER);
	} else {
		answer_length =
			(size_t)snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", length);
		memcpy(answer + answer_length, content, length);
		answer_length += length;
	}
}

int main(int argc, char **argv) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	usage_program = "responder";
	if (argc != 5 || (strcmp(argv[1], "fcgi") != 0 && strcmp(argv[1], "http") != 0))
		usage_refuse("the arguments are: fcgi|http PORT BYTES PROCESSES");
	const bool fcgi = strcmp(argv[1], "fcgi") == 0;
	address.sin_port = htons((uint16_t)usage_whole_number("PORT", argv[2], 1, UINT16_MAX));
	const uint64_t bytes = usage_whole_number("BYTES", argv[3], 0, BYTES_MAX);
	const uint64_t processes = usage_whole_number("PROCESSES", argv[4], 1, PROCESSES_MAX);
	make_answer(fcgi, (size_t)bytes);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	if (listener == -1 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == -1) fail("socket");
	if (bind(listener, (struct sockaddr *)&address, sizeof address) == -1 || listen(listener, 1024) == -1) fail("bind");
	for (uint64_t i = 1; i < processes; i++) {
		pid_t child = fork();
		if (child == -1) fail("fork");
		if (child == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == -1) fail("prctl");
		if (child == 0) break;
	}
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		if (fd == -1) continue;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		fcgi ? answer_fcgi(fd) : answer_http(fd);
		close(fd);
	}
}
