/* listen.c - see listen.h. */
#include "gatling/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gatling/platform.h"

/* The kernel cuts it down to the largest that the system allows (net.core.somaxconn, kern.ipc.somaxconn). */
enum { BACKLOG = INT_MAX };

/* A connection that comes before its request costs a half more than one that comes with it (measured with wrk: 6.7 us
 * and 4.4 us). Who is silent, as a browser that connects in advance, stays in the kernel's queue of half-open ones for
 * this long, the shortest there is, and is then taken in as ever; when that queue is full, SYN cookies take its place,
 * and nobody is deferred. */
enum { DEFER_S = 1 };

struct place {
	const char *text; /* as given; NULL: all addresses */
	bool dual_stack;
	struct sockaddr_storage address;
	socklen_t length;
};

static int complain(const struct place *p, int port, const char *why) {
	if (p->address.ss_family == AF_UNIX) fprintf(stderr, "gatling: cannot listen on %s: %s\n", p->text, why);
	else fprintf(stderr, "gatling: cannot listen on %s port %d: %s\n", p->text ? p->text : "*", port, why);
	return -1;
}

static int parse_unix(struct place *p) {
	struct sockaddr_un *un = (struct sockaddr_un *)&p->address;
	const char *path = p->text + strlen("unix:");
	un->sun_family = AF_UNIX;
	p->length = sizeof *un;
	if (!*path) return complain(p, 0, "the path is missing");
	if (strlen(path) >= sizeof un->sun_path) return complain(p, 0, "the path is too long");
	memcpy(un->sun_path, path, strlen(path) + 1);
	return 0;
}

static int parse_place(struct place *p, int port) {
	if (p->text && strncmp(p->text, "unix:", strlen("unix:")) == 0) return parse_unix(p);
	char service[16];
	struct addrinfo *found;
	struct addrinfo hints = {.ai_family = p->text ? AF_UNSPEC : AF_INET6,
							 .ai_socktype = SOCK_STREAM,
							 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	snprintf(service, sizeof service, "%d", port);
	if (getaddrinfo(p->text, service, &hints, &found) != 0)
		return complain(p, port, "not an IPv4 or IPv6 address, nor unix:PATH");
	memcpy(&p->address, found->ai_addr, found->ai_addrlen);
	p->length = found->ai_addrlen;
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)&p->address)->sin6_addr;
	p->dual_stack = !p->text || (p->address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(in6));
	freeaddrinfo(found);
	return 0;
}

static int set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value); }

static int fail(int fd) {
	int error = errno;
	if (fd != -1) close(fd);
	errno = error;
	return -1;
}

static int open_tcp(const struct place *p, bool reuseport) {
	int fd = socket(p->address.ss_family, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	bool ipv6 = p->address.ss_family == AF_INET6;
	/* options that an accepted socket inherits cost nothing there: all answers go out whole, so no Nagle */
	if (set(fd, SOL_SOCKET, SO_REUSEADDR, 1) == -1 || set(fd, IPPROTO_TCP, TCP_NODELAY, 1) == -1 ||
		(ipv6 && set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !p->dual_stack) == -1) ||
		(reuseport && set(fd, SOL_SOCKET, PLATFORM_REUSEPORT, 1) == -1) ||
		bind(fd, (const struct sockaddr *)&p->address, p->length) == -1)
		return fail(fd);
	return fd;
}

/* A socket file that nobody listens on any more is in the way; one that somebody does is not ours to remove. */
static void remove_stale(const struct place *p) {
	const struct sockaddr_un *un = (const struct sockaddr_un *)&p->address;
	struct stat st;
	if (lstat(un->sun_path, &st) == -1 || !S_ISSOCK(st.st_mode)) return;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1) return;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && connect(fd, (const struct sockaddr *)un, p->length) == -1 &&
		errno == ECONNREFUSED)
		unlink(un->sun_path);
	close(fd);
}

static int open_unix(const struct place *p) {
	remove_stale(p);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	if (bind(fd, (const struct sockaddr *)&p->address, p->length) == -1) return fail(fd);
	/* any local user may connect, as to a port */
	if (chmod(((const struct sockaddr_un *)&p->address)->sun_path, 0666) == -1) return fail(fd);
	return fd;
}

/* The first socket of a place. With SO_REUSEPORT alone a second server would quietly share the port; so a socket
 * without it has to get the address first. A port of 0 becomes the one that the system chose. */
static int open_first(struct place *p) {
	if (p->address.ss_family == AF_UNIX) return open_unix(p);
	int fd = open_tcp(p, false);
	if (fd == -1 && p->dual_stack && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) { /* no IPv6 here */
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = ((struct sockaddr_in6 *)&p->address)->sin6_port};
		p->dual_stack = false;
		memcpy(&p->address, &any, sizeof any);
		p->length = sizeof any;
		fd = open_tcp(p, false);
	}
	if (fd == -1 || getsockname(fd, (struct sockaddr *)&p->address, &p->length) == -1) return fail(fd);
	if (!PLATFORM_REUSEPORT) return fd;
	close(fd);
	return open_tcp(p, true);
}

static int start_listening(int fd) {
	if (listen(fd, BACKLOG) == -1) return -1;
	return fcntl(fd, F_SETFL, O_NONBLOCK) == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ? -1 : 0;
}

static unsigned port_of(const struct place *p) {
	switch (p->address.ss_family) {
	case AF_INET: return ntohs(((const struct sockaddr_in *)&p->address)->sin_port);
	case AF_INET6: return ntohs(((const struct sockaddr_in6 *)&p->address)->sin6_port);
	default: return 0;
	}
}

static void close_listeners(struct worker *w, unsigned from) {
	while (w->listeners > from) close(w->listener[--w->listeners].fd);
}

/* A socket for each worker. */
static int open_place(const struct options *o, const char *text, bool secure, struct worker *workers) {
	int port = secure ? o->tls_port : o->port, first = -1;
	struct place p = {.text = text};
	if (parse_place(&p, port) == -1) return -1;
	if (secure && p.address.ss_family == AF_UNIX) return 0;
	for (int n = 0; n < o->workers; n++) {
		struct worker *w = &workers[n];
		int fd;
		if (n == 0) fd = first = open_first(&p);
		else if (PLATFORM_REUSEPORT && p.address.ss_family != AF_UNIX) fd = open_tcp(&p, true);
		else fd = dup(first);
		if (fd != -1 && o->defer_accept) platform_defer_accept(fd, DEFER_S);
		if (fd == -1 || start_listening(fd) == -1) {
			complain(&p, port, strerror(errno));
			if (fd != -1) close(fd);
			return -1;
		}
		w->listener[w->listeners++] = (struct listener){
			.kind = COOKIE_LISTENER, .fd = fd, .port = port_of(&p), .secure = secure, .address = text};
	}
	return 0;
}

static int open_places(const struct options *o, bool secure, struct worker *workers) {
	unsigned places = o->addresses ? o->addresses : 1;
	for (unsigned i = 0; i < places; i++)
		if (open_place(o, o->addresses ? o->address[i] : NULL, secure, workers) == -1) return -1;
	return 0;
}

int listen_open(const struct options *o, bool https, struct worker *workers) {
	if (open_places(o, false, workers) == -1) return -1;
	unsigned plain = workers[0].listeners;
	if (!https || open_places(o, true, workers) == 0) return 0;
	if (o->https == HTTPS_ON) return -1;
	fputs("gatling: going on without HTTPS\n", stderr);
	for (int n = 0; n < o->workers; n++) close_listeners(&workers[n], plain);
	return 0;
}

void listen_describe(const struct options *o, const struct worker *w, char *out, size_t size) {
	size_t n = 0;
	*out = '\0';
	for (unsigned i = 0; i < w->listeners && n < size; i++) {
		const struct listener *l = &w->listener[i];
		const char *text = l->address ? l->address : "localhost";
		const char *format = strchr(text, ':') ? "%s%s://[%s]:%u/" : "%s%s://%s:%u/";
		const char *space = i ? " " : "", *scheme = l->secure ? "https" : "http";
		int written = l->port ? snprintf(out + n, size - n, format, space, scheme, text, l->port)
							  : snprintf(out + n, size - n, "%s%s", space, text);
		n += (size_t)written;
	}
	if (!o->addresses && n < size) snprintf(out + n, size - n, " and all other addresses");
}
