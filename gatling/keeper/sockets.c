/* sockets.c - see sockets.h. */
#include "gatling/keeper/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

in_port_t *socket_port(struct socket_address *a) {
	return a->to.any.sa_family == AF_INET ? &a->to.ipv4.sin_port : &a->to.ipv6.sin6_port;
}

unsigned socket_port_number(const struct socket_address *a) {
	switch (a->to.any.sa_family) {
	case AF_INET: return ntohs(a->to.ipv4.sin_port);
	case AF_INET6: return ntohs(a->to.ipv6.sin6_port);
	default: return 0;
	}
}

bool socket_path(int fd, char *path) {
	struct sockaddr_un a = {.sun_family = AF_UNSPEC};
	socklen_t length = sizeof a;
	if (getsockname(fd, (struct sockaddr *)&a, &length) == -1 || a.sun_family != AF_UNIX) return false;
	memcpy(path, a.sun_path, sizeof a.sun_path);
	path[sizeof a.sun_path] = '\0';
	return length > offsetof(struct sockaddr_un, sun_path) && *path;
}

/* Returns the value of a socket option of type int, or -1 with errno. */
static int option(int fd, int level, int name) {
	int value = 0;
	socklen_t length = sizeof value;
	return getsockopt(fd, level, name, &value, &length) == -1 ? -1 : value;
}

bool socket_listens(int fd) { return option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1; }

/* Fills in the address of a socket of that type. Returns 0, or -1 with errno. */
static int look_at(int fd, int wanted, struct socket_address *a) {
	*a = (struct socket_address){.length = sizeof a->to};
	if (getsockname(fd, &a->to.any, &a->length) == -1) return -1;
	int family = a->to.any.sa_family, type = option(fd, SOL_SOCKET, SO_TYPE);
	if (type != wanted || (family != AF_INET && family != AF_INET6 && (family != AF_UNIX || type != SOCK_STREAM))) {
		errno = EINVAL;
		return -1;
	}
	a->dual_stack = family == AF_INET6 && option(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
	return 0;
}

bool socket_takes_datagrams(int fd) {
	struct socket_address a;
	return look_at(fd, SOCK_DGRAM, &a) == 0;
}

/* Writes the address in the form of -i. Returns false if it stands for all interfaces. */
static bool describe(const struct socket_address *a, char text[sizeof a->to + 8]) {
	switch (a->to.any.sa_family) {
	case AF_UNIX: snprintf(text, sizeof a->to + 8, "unix:%s", a->to.local.sun_path); return true;
	case AF_INET: inet_ntop(AF_INET, &a->to.ipv4.sin_addr, text, sizeof a->to); return true;
	default: inet_ntop(AF_INET6, &a->to.ipv6.sin6_addr, text, sizeof a->to); return !a->dual_stack;
	}
}

int sockets_add(struct sockets *s, int fd, bool secure, unsigned group) {
	struct listening_socket one = {.fd = fd, .secure = secure, .group = group}, *more;
	char text[sizeof one.address.to + 8];
	if (look_at(fd, s->datagrams ? SOCK_DGRAM : SOCK_STREAM, &one.address) == -1) goto fail;
	errno = EMFILE;
	if (s->count == SOCKETS_MAX) goto fail;
	more = realloc(s->at, (s->count + 1) * sizeof *s->at);
	if (!more) goto fail;
	s->at = more;
	if (describe(&one.address, text) && !(one.text = strdup(text))) goto fail;
	s->at[s->count++] = one;
	return 0;
fail : {
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}
}

/* Returns whether a socket, which must be in no group, has this address. Port 0 fits any port, if the socket speaks TLS
 * just when `secure` is true. */
static bool fits(const struct listening_socket *s, const struct socket_address *a, bool secure) {
	struct socket_address wanted = *a;
	int family = a->to.any.sa_family;
	if (s->group || s->address.to.any.sa_family != family || s->address.dual_stack != a->dual_stack) return false;
	if (family == AF_UNIX) return strcmp(s->address.to.local.sun_path, a->to.local.sun_path) == 0;
	if (!*socket_port(&wanted)) {
		if (s->secure != secure) return false;
		*socket_port(&wanted) = htons((in_port_t)socket_port_number(&s->address));
	}
	return s->address.length == a->length && memcmp(&s->address.to, &wanted.to, a->length) == 0;
}

unsigned sockets_take(struct sockets *s, struct socket_address *a, bool secure, unsigned group) {
	unsigned taken = 0;
	for (unsigned i = 0; i < s->count; i++) {
		if (!fits(&s->at[i], a, secure)) continue;
		s->at[i].group = group;
		s->at[i].secure = secure;
		*a = s->at[i].address;
		taken++;
	}
	return taken;
}

int sockets_name(struct sockets *s, unsigned group, const char *text) {
	for (unsigned i = 0; i < s->count; i++) {
		if (s->at[i].group != group) continue;
		free(s->at[i].text);
		s->at[i].text = text ? strdup(text) : NULL;
		if (text && !s->at[i].text) return -1;
	}
	return 0;
}

bool sockets_any_secure(const struct sockets *s) {
	bool found = false;
	for (unsigned i = 0; i < s->count; i++) found |= s->at[i].secure;
	return found;
}

void sockets_close(struct sockets *s, bool (*which)(const struct listening_socket *)) {
	unsigned kept = 0;
	if (!which && s->status) {
		close(s->status);
		s->status = 0;
	}
	for (unsigned i = 0; i < s->count; i++) {
		if (which && !which(&s->at[i])) {
			s->at[kept++] = s->at[i];
			continue;
		}
		close(s->at[i].fd);
		free(s->at[i].text);
	}
	s->count = kept;
	if (kept) return;
	free(s->at);
	s->at = NULL;
}

static bool is_unused(const struct listening_socket *s) { return !s->group; }

void sockets_close_unused(struct sockets *s) { sockets_close(s, is_unused); }
