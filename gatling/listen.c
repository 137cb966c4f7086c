/* listen.c - see listen.h. */
#include "gatling/listen.h"

#include <arpa/inet.h>
#include <assert.h>
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/load/kernel_memory.h"
#include "gatling/status/address.h"

enum { LISTEN_TEXT_MAX = 512 };

/* Each address may have two listeners, one of them for TLS, and the process before may have left surplus ones. */
static_assert(LISTENERS_MAX == 4 * 2 * ADDRESSES_MAX, "all addresses have listeners");

/* The most descriptors of a worker with listen_reserve(): the kernel has 8 bytes for each in the worker's table. */
enum { DESCRIPTORS_MAX = 1 << 16 };

/* A smaller limit of waiting connections is reported. Before Linux 5.4 it was 128, fewer than come in a busy second. */
enum { QUEUE_MIN = 4096 };

/* Seconds for which a connection without a request is not accepted, since accepting it first costs half as much again
 * (measured with wrk: 6.7 us and 4.4 us). The connection of a silent client, such as a browser that connects in
 * advance, stays in the kernel's queue of half-open connections for this time, the shortest possible, and is then
 * accepted. If that queue is full, SYN cookies replace it, and no connection is deferred. */
enum { DEFER_S = 1 };

struct listen_address {
	const char *text; /* in the form of -i; NULL: all addresses */
	struct socket_address address;
	bool secure;
};

static bool is_unix(const struct listen_address *p) { return p->address.to.any.sa_family == AF_UNIX; }

/* Prints an error. Returns -1. */
static int cannot_listen(const struct listen_address *p, int port, const char *reason) {
	const bool reserved = errno == EACCES && port && port < IPPORT_RESERVED;
	char text[LISTEN_TEXT_MAX], hint[LISTEN_TEXT_MAX] = "", why[2 * LISTEN_TEXT_MAX];
	if (is_unix(p)) return notice_cannot("listen on", p->text, reason);
	snprintf(text, sizeof text, "%s port %d", p->text ? p->text : "*", port);
	if (reserved)
		snprintf(hint, sizeof hint, " (only root may use ports below 1024; try %s)",
				 p->secure ? "--tls-port 8443" : "-p 8000");
	snprintf(why, sizeof why, "%s%s", reason, hint);
	return notice_cannot("listen on", text, why);
}

/* Returns the reason, from errno, why an address cannot be used. */
static const char *reason(const struct socket_address *a) {
	struct stat st;
	if (errno == ENOSPC) return "a worker would have too many sockets: start more workers";
	bool taken = errno == EADDRINUSE && a->to.any.sa_family == AF_UNIX;
	bool other = taken && lstat(a->to.local.sun_path, &st) == 0 && !S_ISSOCK(st.st_mode);
	return other ? "it exists, and is not a socket" : strerror(taken ? EADDRINUSE : errno);
}

static int parse_unix(struct listen_address *p) {
	struct sockaddr_un *address = &p->address.to.local;
	const char *path = p->text + strlen("unix:");
	address->sun_family = AF_UNIX;
	p->address.length = sizeof *address;
	if (!*path) return cannot_listen(p, 0, "the path is missing");
	if (strlen(path) >= sizeof address->sun_path) return cannot_listen(p, 0, "the path is too long");
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

/* Returns all addresses that text stands for, to be freed with freeaddrinfo(3), or NULL if there are none. */
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

static int open_tcp(const struct socket_address *a, bool reuseport) {
	int fd = socket(a->to.any.sa_family, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	bool ipv6 = a->to.any.sa_family == AF_INET6;
	/* accepted sockets inherit the options, which saves calls; Nagle's algorithm is of no use, as responses are sent
	 * whole */
	if (set(fd, SOL_SOCKET, SO_REUSEADDR, 1) == -1 || set(fd, IPPROTO_TCP, TCP_NODELAY, 1) == -1 ||
		(ipv6 && set(fd, IPPROTO_IPV6, IPV6_V6ONLY, !a->dual_stack) == -1) ||
		(reuseport && set(fd, SOL_SOCKET, PLATFORM_REUSEPORT, 1) == -1) || bind(fd, &a->to.any, a->length) == -1)
		return fail(fd);
	return fd;
}

/* Removes a socket file on which no process listens. */
static void remove_stale(const struct socket_address *a) {
	const char *path = a->to.local.sun_path;
	struct stat st;
	if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode)) return;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1) return;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && connect(fd, &a->to.any, a->length) == -1 && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

static int open_unix(const struct socket_address *a, mode_t mode) {
	remove_stale(a);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	bool open = bind(fd, &a->to.any, a->length) == 0 && chmod(a->to.local.sun_path, mode) == 0;
	return open ? fd : fail(fd);
}

/* Replaces a dual-stack address with that of IPv4, for a system without IPv6. */
static void leave_ipv6(struct socket_address *a) {
	a->dual_stack = false;
	a->to.ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = *socket_port(a)};
	a->length = sizeof a->to.ipv4;
}

/* Opens the first socket of an address. With SO_REUSEPORT a second server would silently share the port, so a socket
 * without it has to bind the address first. A port of 0 becomes the one that the system has chosen. */
static int open_first(struct socket_address *a) {
	if (a->to.any.sa_family == AF_UNIX) return open_unix(a, 0666); /* any local user may connect, as to a port */
	int fd = open_tcp(a, false);
	if (fd == -1 && a->dual_stack && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
		leave_ipv6(a);
		fd = open_tcp(a, false);
	}
	if (fd == -1 || getsockname(fd, &a->to.any, &a->length) == -1) return fail(fd);
	if (!PLATFORM_REUSEPORT) return fd;
	close(fd);
	return open_tcp(a, true);
}

/* Opens the first socket of an address. Tries again while the previous process, which is about to end, still uses
 * it. */
static int open_patiently(struct sockets *sockets, struct socket_address *a) {
	const struct timespec pause = {.tv_nsec = 50000000};
	int fd;
	while ((fd = open_first(a)) == -1 && errno == EADDRINUSE && sockets->patience > 0) {
		sockets->patience--;
		nanosleep(&pause, NULL);
	}
	return fd;
}

/* Makes a socket listen, and sets its options and flags. Returns 0, or -1 with errno. */
static int set_up(const struct options *o, int fd) {
	platform_defer_accept(fd, o->defer_accept ? DEFER_S : 0);
	/* the previous process may still use the socket, so its other flags are kept */
	int flags = fcntl(fd, F_GETFL);
	bool done = listen(fd, LISTEN_BACKLOG) == 0 && flags != -1 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
				fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
	return done ? 0 : -1;
}

/* Returns a socket without SO_REUSEADDR, which holds a port even if it does not listen. Sockets with that option do
 * not, so another user could take the port while a worker's socket does not listen. Returns -1 if this is
 * impossible. */
static int keep_port(const struct socket_address *a) {
	if (!PLATFORM_REUSEPORT || a->to.any.sa_family == AF_UNIX) return -1;
	int fd = open_tcp(a, true);
	if (fd == -1) return -1;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && set(fd, SOL_SOCKET, SO_REUSEADDR, 0) == 0 ? fd : fail(fd);
}

/* Gives a worker a duplicate of a socket, in a listener. own: no other worker uses the socket. Returns 0, or -1 with
 * errno. */
static int give(struct worker *w, const struct listening_socket *s, bool own) {
	errno = ENOSPC;
	if (w->acceptor.listeners == LISTENERS_MAX) return -1;
	int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd == -1) return -1;
	w->acceptor.listener[w->acceptor.listeners++] = (struct listener){.kind = COOKIE_LISTENER,
																	  .fd = fd,
																	  .again = fd,
																	  .port = socket_port_number(&s->address),
																	  .secure = s->secure,
																	  .holder = own ? keep_port(&s->address) : -1};
	return 0;
}

/* Gives each worker a socket of the last group. If there are fewer sockets than workers, workers share them. If there
 * are more, since the previous process had more workers, all workers accept from the surplus ones. Returns 0, or -1
 * with errno. */
static int deal_out(const struct options *o, const struct sockets *sockets, struct worker *workers) {
	errno = ENOSPC;
	if (sockets->groups > LISTENERS_MAX) return -1;
	unsigned have = 0, k = 0, count = (unsigned)o->workers;
	bool own;
	for (unsigned i = 0; i < sockets->count; i++) have += sockets->at[i].group == sockets->groups;
	for (unsigned i = 0; i < sockets->count; i++) {
		if (sockets->at[i].group != sockets->groups) continue;
		own = have >= count && k < count && !sockets->activated;
		for (unsigned n = 0; n < count; n++)
			if ((n % have == k || k >= count) && give(&workers[n], &sockets->at[i], own) == -1) return -1;
		k++;
	}
	return 0;
}

/* Finds the open sockets of an address, or opens the first one. Opens further ones, so that each worker has its own, if
 * the system can distribute connections over them. Returns 0, or -1 with errno. */
static int open_address(const struct options *o, struct sockets *sockets, struct socket_address *a, bool secure,
						struct worker *workers) {
	struct socket_address ipv4 = *a;
	unsigned group = ++sockets->groups, have = sockets_take(sockets, a, secure, group);
	if (!have && a->dual_stack) { /* the previous process found no IPv6 */
		leave_ipv6(&ipv4);
		have = sockets_take(sockets, &ipv4, secure, group);
		if (have) *a = ipv4;
	}
	/* a service manager keeps its own sockets open, but would not keep others that were opened beside them */
	bool inherited = have > 0, shared = !PLATFORM_REUSEPORT || a->to.any.sa_family == AF_UNIX;
	if (inherited && sockets->activated) shared = true;
	for (; have < (unsigned)o->workers && !(have && shared); have++) {
		int fd = have ? open_tcp(a, true) : open_patiently(sockets, a);
		if (fd == -1 && inherited) break; /* the workers share the inherited ones */
		if (fd == -1) return -1;
		/* beside sockets in use it would get connections at once, so it listens later: see listen_start() */
		if (!inherited && listen(fd, LISTEN_BACKLOG) == -1) return fail(fd);
		if (sockets_add(sockets, fd, secure, group) == -1) return -1;
	}
	return deal_out(o, sockets, workers);
}

/* Opens those addresses that text stands for and this machine has. With port 0 all get the same port. Returns 0, or -1
 * after printing an error. */
static int open_addresses(const struct options *o, struct sockets *sockets, const char *text, bool secure,
						  struct worker *workers) {
	int port = secure ? o->tls_port : o->port, error = 0;
	in_port_t chosen = 0;
	struct listen_address p = {.text = text, .secure = secure};
	if (text && strncmp(text, "unix:", strlen("unix:")) == 0) {
		if (parse_unix(&p) == -1) return -1;
		bool open = secure || (open_address(o, sockets, &p.address, false, workers) == 0 &&
							   sockets_name(sockets, sockets->groups, text) == 0);
		return open ? 0 : cannot_listen(&p, port, reason(&p.address));
	}
	struct addrinfo *found = resolve(text, port);
	if (!found)
		return cannot_listen(&p, port,
							 "not an IPv4 or IPv6 address (without brackets or port, which is -p), a name of this "
							 "machine, or unix:PATH");
	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		if (is_before(found, a)) continue;
		p.address = (struct socket_address){.length = a->ai_addrlen};
		memcpy(&p.address.to, a->ai_addr, a->ai_addrlen);
		p.address.dual_stack =
			!text || (a->ai_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&p.address.to.ipv6.sin6_addr));
		if (chosen) *socket_port(&p.address) = chosen;
		if (open_address(o, sockets, &p.address, secure, workers) == 0 &&
			sockets_name(sockets, sockets->groups, text) == 0)
			chosen = *socket_port(&p.address);
		else error = errno;
		if (error && error != EADDRNOTAVAIL && error != EAFNOSUPPORT) break;
	}
	freeaddrinfo(found);
	errno = error;
	bool missing = error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
	return chosen && (!error || missing) ? 0 : cannot_listen(&p, port, reason(&p.address));
}

static int open_all(const struct options *o, struct sockets *sockets, bool secure, struct worker *workers) {
	unsigned count = o->addresses ? o->addresses : 1;
	for (unsigned i = 0; i < count; i++)
		if (open_addresses(o, sockets, o->addresses ? o->address[i] : NULL, secure, workers) == -1) return -1;
	return 0;
}

/* Serves those sockets of the service manager whose addresses are not in the options. Returns 0, or -1 after printing
 * an error. */
static int open_activated(const struct options *o, bool https, struct sockets *sockets, struct worker *workers) {
	for (unsigned i = 0; i < sockets->count; i++) {
		const struct listening_socket s = sockets->at[i];
		struct listen_address p = {.text = s.text, .address = s.address, .secure = s.secure};
		int port = (int)socket_port_number(&s.address);
		if (s.group) continue;
		if (s.secure && !https) return cannot_listen(&p, port, "it is for HTTPS, which --no-https excludes");
		if (open_address(o, sockets, &p.address, s.secure, workers) == -1)
			return cannot_listen(&p, port, reason(&p.address));
	}
	return 0;
}

/* Reports sysctls that make the kernel drop connections under load, and tells the workers how much memory it has for
 * TCP. */
static void look_at_system(const struct options *o, struct worker *workers) {
	struct platform_tcp tcp = platform_tcp();
	char remedy[LISTEN_TEXT_MAX] = "";
	size_t n = 0;
	if (tcp.queue != -1 && tcp.queue < QUEUE_MIN)
		n += (size_t)snprintf(remedy, sizeof remedy, " net.core.somaxconn=%d", QUEUE_MIN);
	if (tcp.syncookies == 0) snprintf(remedy + n, sizeof remedy - n, " net.ipv4.tcp_syncookies=1");
	if (*remedy) notice(0, "the kernel will drop new connections when many come at once: sysctl -w%s", remedy);
	for (struct worker *w = workers; w < workers + o->workers && tcp.memory > 0; w++) {
		w->acceptor.tcp_memory = (uint64_t)tcp.memory;
		w->context.kernel.most = (uint64_t)tcp.memory / KERNEL_MEMORY_SHARE / (unsigned)o->workers;
	}
}

/* --- the status page --- */

static bool is_at(int fd, const struct socket_address *a) {
	struct socket_address own = {.length = sizeof own.to};
	if (getsockname(fd, &own.to.any, &own.length) == -1 || own.to.any.sa_family != a->to.any.sa_family) return false;
	if (own.to.any.sa_family == AF_UNIX) return strcmp(own.to.local.sun_path, a->to.local.sun_path) == 0;
	return own.length == a->length && memcmp(&own.to, &a->to, a->length) == 0;
}

int listen_status(const struct options *o, struct sockets *sockets) {
	struct sockaddr_storage address;
	struct socket_address a = {0};
	if (sockets->status && !o->take_over) return 0; /* a service manager has opened it */
	if (o->status && !status_address(o->status, &address, &a.length))
		return notice_cannot("show the status on", o->status,
							 "it takes unix:PATH, PORT or ADDRESS:PORT, with a port from 1 to 65535");
	if (o->status) memcpy(&a.to, &address, a.length);
	if (sockets->status && o->status && is_at(sockets->status, &a)) return 0;
	if (sockets->status) close(sockets->status);
	sockets->status = 0;
	if (!o->status) return 0;
	/* only its owner may connect to a unix socket, but anybody who can reach a port */
	int fd = a.to.any.sa_family == AF_UNIX ? open_unix(&a, 0600) : open_tcp(&a, false);
	if (fd == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 || listen(fd, SOMAXCONN) == -1) {
		(void)fail(fd);
		return notice_cannot("show the status on", o->status, reason(&a));
	}
	sockets->status = fd;
	return 0;
}

static bool is_secure(const struct listening_socket *s) { return s->secure; }

/* Opens the addresses of the options, and continues without HTTPS if that is optional. Returns 0, or -1 after printing
 * an error. */
static int open_wanted(const struct options *o, bool https, struct sockets *sockets, struct worker *workers) {
	if (open_all(o, sockets, false, workers) == -1) return -1;
	unsigned plain = workers[0].acceptor.listeners;
	if (!https || open_all(o, sockets, true, workers) == 0) return 0;
	if (o->tls.https == HTTPS_ON) return -1;
	notice_line(LEVEL_WARNING, "going on without HTTPS");
	sockets_close(sockets, is_secure);
	for (struct worker *w = workers; w < workers + o->workers; w++)
		while (w->acceptor.listeners > plain) listener_close(&w->acceptor.listener[--w->acceptor.listeners]);
	return 0;
}

void listen_start(const struct options *o, const struct sockets *sockets) {
	for (unsigned i = 0; i < sockets->count; i++)
		if (set_up(o, sockets->at[i].fd) == -1) notice(0, "cannot listen on a further socket: %s", strerror(errno));
}

int listen_open(const struct options *o, bool https, struct sockets *sockets, struct worker *workers) {
	look_at_system(o, workers);
	if ((!sockets->activated || o->addresses) && open_wanted(o, https, sockets, workers) == -1) return -1;
	if (sockets->activated && open_activated(o, https, sockets, workers) == -1) return -1;
	sockets_close_unused(sockets);
	return 0;
}

/* Gives a listener a descriptor of the numbers from `from` to `to`, without the latter. Returns 0, or -1 with errno. */
static int reserve(struct listener *l, unsigned from, unsigned to) {
	const int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, (int)from);
	if (fd == -1) return -1;
	l->again = fd;
	errno = EMFILE;
	return (unsigned)fd < to ? 0 : -1;
}

int listen_reserve(struct worker *workers, unsigned count_of_workers, unsigned *from, unsigned *count) {
	struct rlimit limit;
	unsigned wanted = 0;
	bool failed = getrlimit(RLIMIT_NOFILE, &limit) == -1;
	for (unsigned i = 0; i < count_of_workers; i++) wanted += workers[i].acceptor.listeners;
	for (*count = 1; *count < wanted;) *count *= 2;
	if (failed || limit.rlim_cur > DESCRIPTORS_MAX) limit.rlim_cur = DESCRIPTORS_MAX;
	*from = limit.rlim_cur > 2 * *count ? ((unsigned)limit.rlim_cur - *count) & ~(*count - 1) : 0;
	for (unsigned i = 0; i < count_of_workers; i++)
		for (unsigned k = 0; k < workers[i].acceptor.listeners && !failed; k++)
			failed = reserve(&workers[i].acceptor.listener[k], *from, *from + *count) == -1;
	limit.rlim_cur = limit.rlim_max = *from;
	if (!failed && setrlimit(RLIMIT_NOFILE, &limit) == 0) return 0;
	return notice_cannot("reserve", "descriptors for listening (ulimit -n)", strerror(errno));
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

/* Returns whether an earlier socket has the same name and port, and so the same description. */
static bool is_told(const struct sockets *sockets, unsigned i) {
	const struct listening_socket *one = &sockets->at[i];
	for (unsigned k = 0; k < i; k++) {
		const struct listening_socket *other = &sockets->at[k];
		bool same = one->text && other->text ? strcmp(one->text, other->text) == 0 : one->text == other->text;
		if (same && socket_port_number(&one->address) == socket_port_number(&other->address)) return true;
	}
	return false;
}

char *listen_describe(const struct sockets *sockets) {
	char own[INET_ADDRSTRLEN] = "", *addresses = NULL;
	size_t size;
	bool all = false;
	FILE *out = open_memstream(&addresses, &size);
	if (!out) return NULL;
	for (unsigned i = 0; i < sockets->count; i++) {
		const struct listening_socket *s = &sockets->at[i];
		const char *text = s->text ? s->text : "localhost", *scheme = s->secure ? "https" : "http";
		unsigned port = socket_port_number(&s->address);
		if (is_told(sockets, i)) continue;
		if (i) putc(' ', out);
		if (!port) fputs(text, out);
		else fprintf(out, strchr(text, ':') ? "%s://[%s]:%u/" : "%s://%s:%u/", scheme, text, port);
		if (!s->text && (*own || own_address(own))) fprintf(out, " %s://%s:%u/", scheme, own, port);
		all |= !s->text;
	}
	if (all) fputs(" and all other addresses", out);
	fclose(out);
	return addresses;
}
