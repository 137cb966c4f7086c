/* top.c - see status_top() in status.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/status/address.h"
#include "gatling/status/status.h"

enum { ANSWER_MAX = 64 * 1024, ANSWER_S = 5 };

/* Requests the text. Returns the content of the answer, which is in `room`, or NULL with errno, which is 0 if the
 * answer is not the text. */
static const char *ask(const struct sockaddr_storage *address, socklen_t length, char room[ANSWER_MAX]) {
	static const char request[] = "GET /text HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	const struct timeval limit = {.tv_sec = ANSWER_S};
	int fd = socket(address->ss_family, SOCK_STREAM, 0);
	size_t used = 0;
	ssize_t n = -1;
	if (fd != -1 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
		connect(fd, (const struct sockaddr *)address, length) == 0 &&
		send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != -1)
		while ((n = recv(fd, room + used, ANSWER_MAX - 1 - used, 0)) > 0) used += (size_t)n;
	int error = errno == EAGAIN ? ETIMEDOUT : errno;
	if (fd != -1) close(fd);
	room[used] = '\0';
	errno = n == 0 ? 0 : error;
	const char *content = n == 0 && strncmp(room, "HTTP/1.1 200 ", 13) == 0 ? strstr(room, "\r\n\r\n") : NULL;
	return content ? content + 4 : NULL;
}

int status_top(const char *text) {
	static char room[ANSWER_MAX];
	const struct timespec second = {.tv_sec = 1};
	struct sockaddr_storage address;
	socklen_t length;
	bool terminal = isatty(STDOUT_FILENO);
	if (!status_address(text, &address, &length))
		return -notice_cannot("show", text,
							  "--top takes the address that --status has: unix:PATH, PORT or ADDRESS:PORT");
	do {
		const char *content = ask(&address, length, room);
		if (!content)
			return -notice_cannot("show", text, errno ? strerror(errno) : "what answers there is not gatling --status");
		/* from the top left corner; each line to its end, then what is left of the screen is erased */
		if (terminal) fputs("\033[H", stdout);
		for (const char *c = content; *c; c++) {
			if (terminal && *c == '\n') fputs("\033[K", stdout);
			putchar(*c);
		}
		if (terminal) fputs("\033[J", stdout);
		if (fflush(stdout) == EOF) return 1;
	} while (terminal && nanosleep(&second, NULL) == 0);
	return 0;
}
