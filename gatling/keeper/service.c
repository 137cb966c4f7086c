/* service.c - see service.h. */
#include "gatling/keeper/service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/slice.h"

enum { SOCKETS_FIRST = STDERR_FILENO + 1, HTTPS_PORT = 443 };

/* Returns the number in an environment variable, or 0 if there is none, and removes the variable. */
static unsigned long number_in(const char *variable) {
	const char *text = getenv(variable);
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;
	unsetenv(variable);
	return number;
}

/* Takes the next name off the front of a list that is separated by colons, and returns it. */
static struct slice next_name(const char **names) {
	struct slice name = {.at = *names, .length = strcspn(*names, ":")};
	*names += name.length + ((*names)[name.length] == ':');
	return name;
}

/* Adds the sockets that the service manager has passed, count of them. Returns 0, or -1 after printing an error. */
static int take_sockets(struct sockets *s, struct sockets *udp, unsigned long count, const char *names) {
	for (unsigned long i = 0; i < count; i++) {
		int fd = SOCKETS_FIRST + (int)i;
		struct slice name = next_name(&names);
		bool secure = slice_equal(name, SLICE("https")), status = slice_equal(name, SLICE("status"));
		char text[64];
		snprintf(text, sizeof text, "descriptor %d of LISTEN_FDS", fd);
		const bool datagrams = socket_takes_datagrams(fd);
		errno = EINVAL;
		if (!(datagrams || socket_listens(fd)) || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ||
			(!status && sockets_add(datagrams ? udp : s, fd, secure || datagrams, 0) == -1))
			return notice_cannot("use", text,
								 errno == EINVAL ? "it is neither a listening stream socket nor one of UDP"
												 : strerror(errno));
		if (datagrams) {
			udp->activated = true;
			continue;
		}
		if (status) {
			s->status = fd;
			continue;
		}
		struct listening_socket *last = &s->at[s->count - 1];
		last->secure |= socket_port_number(&last->address) == HTTPS_PORT;
		s->activated = true;
	}
	return 0;
}

/* Returns a socket that is connected to path, or -1 with errno. An '@' at its beginning stands for a NUL (unix(7)). */
static int connect_to(const char *path) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	errno = ENAMETOOLONG;
	if (length >= sizeof address.sun_path) return -1;
	memcpy(address.sun_path, path, length);
	if (*path == '@') *address.sun_path = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (fd == -1) return -1;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
		connect(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) ==
			0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

int service_open(struct service *service, struct sockets *sockets, struct sockets *udp) {
	unsigned long pid = number_in("LISTEN_PID"), count = number_in("LISTEN_FDS");
	unsigned long watched = number_in("WATCHDOG_PID"), watchdog_us = number_in("WATCHDOG_USEC");
	unsigned long self = (unsigned long)getpid();
	const char *names = getenv("LISTEN_FDNAMES"), *path = getenv("NOTIFY_SOCKET");
	*service = (struct service){.channel = -1};
	if (pid == self && take_sockets(sockets, udp, count < SOCKETS_MAX ? count : SOCKETS_MAX, names ? names : "") == -1)
		return -1;
	if (path && *path && (service->channel = connect_to(path)) == -1)
		notice(0, "cannot reach the service manager at %s (NOTIFY_SOCKET): %s", path, strerror(errno));
	/* a third of the time that the manager allows, which leaves further tries */
	if (service->channel != -1 && watchdog_us && (!watched || watched == self))
		service->watchdog_ms =
			watchdog_us < 3 * 1000 * (unsigned long)INT_MAX ? (int)(watchdog_us / 3000) + 1 : INT_MAX;
	unsetenv("LISTEN_FDNAMES");
	unsetenv("NOTIFY_SOCKET");
	return 0;
}

void service_tell(const struct service *service, const char *state) {
	if (service->channel == -1 || send(service->channel, state, strlen(state), MSG_NOSIGNAL) != -1) return;
	struct pollfd p = {.fd = service->channel, .events = POLLOUT};
	if (errno == EAGAIN && slice_starts(slice_of(state), SLICE("READY=1")) && poll(&p, 1, SERVICE_WAIT_MS) == 1)
		(void)send(service->channel, state, strlen(state), MSG_NOSIGNAL);
}

bool service_is_managed(const struct service *service) { return service->channel != -1; }
