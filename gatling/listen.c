/* listen.c - see listen.h. */
#include "gatling/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"

enum { LISTEN_TEXT_MAX = 512 };

/* Linux before 5.4 allowed 128 connections to wait, which is less than a busy second brings. */
enum { QUEUE_MIN = 4096 };

/* Accepting a connection before its request costs half as much again (measured with wrk: 6.7 us and 4.4 us). A silent
 * client, such as a browser that connects in advance, stays in the kernel's queue of half-open connections for this
 * long, the shortest time that there is, and is then accepted. If that queue is full, SYN cookies replace it, and no
 * connection is deferred. */
enum { DEFER_S = 1 };

struct listen_address {
	const char *text; /* as on the command line; NULL: all addresses */
	bool dual_stack;
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
		struct sockaddr_un local;
	} address;
	socklen_t length;
};

static bool is_unix(const struct listen_address *p) { return p->address.any.sa_family == AF_UNIX; }

/* Returns where the port of an address is, which is not that of a unix socket. */
static in_port_t *port_in(struct listen_address *p) {
	return p->address.any.sa_family == AF_INET ? &p->address.ipv4.sin_port : &p->address.ipv6.sin6_port;
}

/* Prints an error. Returns -1. */
static int cannot_listen(const struct listen_address *p, int port, const char *reason) {
	const char *hint = errno == EACCES && port && port < IPPORT_RESERVED ? " (below 1024 only root's; as -p 8000)" : "";
	char text[LISTEN_TEXT_MAX], why[LISTEN_TEXT_MAX];
	if (is_unix(p)) return notice_cannot("listen on", p->text, reason);
	snprintf(text, sizeof text, "%s port %d", p->text ? p->text : "*", port);
	snprintf(why, sizeof why, "%s%s", reason, hint);
	return notice_cannot("listen on", text, why);
}

static int parse_unix(struct listen_address *p) {
	struct sockaddr_un *address = &p->address.local;
	const char *path = p->text + strlen("unix:");
	address->sun_family = AF_UNIX;
	p->length = sizeof *address;
	if (!*path) return cannot_listen(p, 0, "the path is missing");
	if (strlen(path) >= sizeof address->sun_path) return cannot_listen(p, 0, "the path is too long");
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

/* Returns the addresses of a text: for a name, all that it has. NULL: none. */
static struct addrinfo *resolve(const char *text, int port) {
	char service[16];
	struct addrinfo *found;
	struct addrinfo hints = {
		.ai_family = text ? AF_UNSPEC : AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
	snprintf(service, sizeof service, "%d", port);
	return getaddrinfo(text, service, &hints, &found) == 0 ? found : NULL;
}

static bool is_before(const struct addrinfo *first, const struct addrinfo *one) {
	for (; first != one; first = first->ai_next)
		if (first->ai_addrlen == one->ai_addrlen && memcmp(first->ai_addr, one->ai_addr, one->ai_addrlen) == 0)
			return true;
	return false;
}

static int set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value); }

static int fail(int fd) {
	int error = errno;
	if (fd != -1) close(fd);
	errno = error;
	return -1;
}

static int open_tcp(const struct listen_address *p, bool reuseport) {
	int fd = socket(p->address.any.sa_family, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	bool ipv6 = p->address.any.sa_family == AF_INET6;
	/* accepted sockets inherit the options, which saves calls; responses are sent whole, so Nagle is of no use */
	if (set(fd, SOL_SOCKET, SO_REUSEADDR, 1) == -1 || set(fd, IPPROTO_TCP, TCP_NODELAY, 1) == -1 ||
		(ipv6 && set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !p->dual_stack) == -1) ||
		(reuseport && set(fd, SOL_SOCKET, PLATFORM_REUSEPORT, 1) == -1) || bind(fd, &p->address.any, p->length) == -1)
		return fail(fd);
	return fd;
}

/* Removes a socket file on which no process listens any more. */
static void remove_stale(const struct listen_address *p) {
	const char *path = p->address.local.sun_path;
	struct stat st;
	if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode)) return;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1) return;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && connect(fd, &p->address.any, p->length) == -1 && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

static int open_unix(const struct listen_address *p) {
	remove_stale(p);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	/* any local user may connect, as to a port */
	bool open = bind(fd, &p->address.any, p->length) == 0 && chmod(p->address.local.sun_path, 0666) == 0;
	return open ? fd : fail(fd);
}

/* Opens the first socket of an address. With SO_REUSEPORT alone a second server would silently share the port, so a
 * socket without it has to get the address first. A port of 0 becomes the one that the system has chosen. */
static int open_first(struct listen_address *p) {
	if (is_unix(p)) return open_unix(p);
	int fd = open_tcp(p, false);
	if (fd == -1 && p->dual_stack && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) { /* without IPv6 */
		p->dual_stack = false;
		p->address.ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = *port_in(p)};
		p->length = sizeof p->address.ipv4;
		fd = open_tcp(p, false);
	}
	if (fd == -1 || getsockname(fd, &p->address.any, &p->length) == -1) return fail(fd);
	if (!PLATFORM_REUSEPORT) return fd;
	close(fd);
	return open_tcp(p, true);
}

/* Opens a socket for each worker. Returns -1 with errno. */
static int open_address(const struct options *o, struct listen_address *p, bool secure, struct worker *workers) {
	int first = -1;
	errno = ENOSPC;
	if (workers[0].acceptor.listeners == LISTENERS_MAX) return -1;
	for (int n = 0; n < o->workers; n++) {
		struct worker *w = &workers[n];
		int fd;
		if (n == 0) fd = first = open_first(p);
		else if (PLATFORM_REUSEPORT && !is_unix(p)) fd = open_tcp(p, true);
		else fd = dup(first);
		if (fd != -1 && o->defer_accept) platform_defer_accept(fd, DEFER_S);
		if (fd == -1 || listen(fd, LISTEN_BACKLOG) == -1 || fcntl(fd, F_SETFL, O_NONBLOCK) == -1 ||
			fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
			return fail(fd);
		unsigned port = is_unix(p) ? 0 : ntohs(*port_in(p));
		w->acceptor.listener[w->acceptor.listeners++] =
			(struct listener){.kind = COOKIE_LISTENER, .fd = fd, .port = port, .secure = secure, .address = p->text};
	}
	return 0;
}

/* Opens all addresses of a text that this machine has; with port 0 all get the same one. */
static int open_addresses(const struct options *o, const char *text, bool secure, struct worker *workers) {
	int port = secure ? o->tls_port : o->port, error = 0;
	in_port_t chosen = 0;
	struct listen_address p = {.text = text};
	if (text && strncmp(text, "unix:", strlen("unix:")) == 0) {
		if (parse_unix(&p) == -1) return -1;
		return secure || open_address(o, &p, false, workers) == 0 ? 0 : cannot_listen(&p, port, strerror(errno));
	}
	struct addrinfo *found = resolve(text, port);
	if (!found)
		return cannot_listen(&p, port, "not an IPv4 or IPv6 address, nor a name of this machine, nor unix:PATH");
	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		if (is_before(found, a)) continue;
		memcpy(&p.address, a->ai_addr, a->ai_addrlen);
		p.length = a->ai_addrlen;
		p.dual_stack = !text || (a->ai_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&p.address.ipv6.sin6_addr));
		if (chosen) *port_in(&p) = chosen;
		if (open_address(o, &p, secure, workers) == 0) chosen = *port_in(&p);
		else error = errno;
		if (error && error != EADDRNOTAVAIL && error != EAFNOSUPPORT) break;
	}
	freeaddrinfo(found);
	errno = error;
	bool missing = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
	return chosen && (!error || missing) ? 0 : cannot_listen(&p, port, strerror(error));
}

static int open_all(const struct options *o, bool secure, struct worker *workers) {
	unsigned count = o->addresses ? o->addresses : 1;
	for (unsigned i = 0; i < count; i++)
		if (open_addresses(o, o->addresses ? o->address[i] : NULL, secure, workers) == -1) return -1;
	return 0;
}

/* Says which sysctls make the kernel drop connections under load, and remembers how much memory it has for TCP. */
static void look_at_system(const struct options *o, struct worker *workers) {
	struct platform_tcp tcp = platform_tcp();
	char remedy[LISTEN_TEXT_MAX] = "";
	size_t n = 0;
	if (tcp.queue != -1 && tcp.queue < QUEUE_MIN)
		n += (size_t)snprintf(remedy, sizeof remedy, " net.core.somaxconn=%d", QUEUE_MIN);
	if (tcp.syncookies == 0) snprintf(remedy + n, sizeof remedy - n, " net.ipv4.tcp_syncookies=1");
	if (*remedy) notice(0, "the kernel will drop new connections when many come at once: sysctl -w%s", remedy);
	for (struct worker *w = workers; w < workers + o->workers && tcp.memory > 0; w++)
		w->acceptor.tcp_memory = (uint64_t)tcp.memory;
}

int listen_open(const struct options *o, bool https, struct worker *workers) {
	look_at_system(o, workers);
	if (open_all(o, false, workers) == -1) return -1;
	unsigned plain = workers[0].acceptor.listeners;
	if (!https || open_all(o, true, workers) == 0) return 0;
	if (o->tls.https == HTTPS_ON) return -1;
	fputs("gatling: going on without HTTPS\n", stderr);
	for (struct worker *w = workers; w < workers + o->workers; w++)
		while (w->acceptor.listeners > plain) close(w->acceptor.listener[--w->acceptor.listeners].fd);
	return 0;
}

/* Writes an address by which others can reach this machine. Returns false if there is none. */
static bool own_address(char out[INET_ADDRSTRLEN]) {
	struct ifaddrs *all;
	bool found = false;
	if (getifaddrs(&all) == -1) return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) continue;
		if (i->ifa_flags & IFF_LOOPBACK) continue;
		found = inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, out,
						  INET_ADDRSTRLEN);
	}
	freeifaddrs(all);
	return found;
}

char *listen_describe(const struct options *o, const struct worker *w) {
	char own[INET_ADDRSTRLEN] = "", *all = NULL;
	size_t size;
	FILE *out = open_memstream(&all, &size);
	if (!out) return NULL;
	for (unsigned i = 0; i < w->acceptor.listeners; i++) {
		const struct listener *l = &w->acceptor.listener[i], *last = i ? l - 1 : NULL;
		const char *text = l->address ? l->address : "localhost", *scheme = l->secure ? "https" : "http";
		if (last && l->port && last->address == l->address && last->port == l->port)
			continue; /* another address of the same name */
		if (i) putc(' ', out);
		if (!l->port) fputs(text, out);
		else fprintf(out, strchr(text, ':') ? "%s://[%s]:%u/" : "%s://%s:%u/", scheme, text, l->port);
		if (!o->addresses && (*own || own_address(own))) fprintf(out, " %s://%s:%u/", scheme, own, l->port);
	}
	if (!o->addresses) fputs(" and all other addresses", out);
	fclose(out);
	return all;
}
