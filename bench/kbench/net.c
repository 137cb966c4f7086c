/* net.c - see net.h. */
#include "bench/kbench/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/counters.h"
#include "bench/kbench/link.h"
#include "bench/machine.h"

enum { READY_MS = 5000, STREAM_PORTS = 100 };

/* The other processes, and the pipes that tell them to continue, one for each direction. */
static struct other {
	pid_t pid;
	int tell, hear;
} others[2];
static int other_count;

/* Send a byte to another process, or wait for one. Return 0 or -1. */
static int say(int fd) { return write(fd, "", 1) == 1 ? 0 : -1; }
static int hear(int fd) {
	char byte;
	return read(fd, &byte, 1) == 1 ? 0 : -1;
}

/* Writes a setting. Returns 0, or -1, also if there is no such setting. */
static int set(const char *setting, const char *value) {
	FILE *out = fopen(setting, "w");
	if (!out) return -1;
	fputs(value, out);
	return fclose(out);
}

/* Makes addresses of links that are added later usable at once. Otherwise duplicate address detection takes a second or
 * two (RFC 4862, section 5.4), and a router cannot ask for its neighbours from the link's own address. */
static void trust_addresses(void) { (void)set("/proc/sys/net/ipv6/conf/default/accept_dad", "0"); }

/* Returns the address of an end of a link: 10.77.LINK.1 or .2, fd77:LINK::1 or ::2. Without a link (below 0), on the
 * loopback, the ports differ instead. */
static union net_address address_of(int family, int link, int end, socklen_t *length) {
	union net_address address = {.any.sa_family = (sa_family_t)family};
	char text[64];
	in_port_t port = htons((uint16_t)(NET_PORT + (link < 0 ? end : 0)));
	if (family == AF_INET6) {
		snprintf(text, sizeof text, link < 0 ? "::1" : "fd77:%d::%d", link, end);
		inet_pton(AF_INET6, text, &address.v6.sin6_addr);
		address.v6.sin6_port = port;
		*length = sizeof address.v6;
	} else {
		snprintf(text, sizeof text, link < 0 ? "127.0.0.1" : "10.77.%d.%d", link, end);
		inet_pton(AF_INET, text, &address.v4.sin_addr);
		address.v4.sin_port = port;
		*length = sizeof address.v4;
	}
	return address;
}

/* Sets up this end of a link. other: the link behind the other end, or -1. */
static int set_up_end(const struct net *net, int link, int end, int other) {
	if (link_set_up(net->settings->link, link, end) == -1) return -1;
	return other < 0 ? 0 : link_route(link, end, other);
}

/* Begins every other process: waits for its links in its own namespace, sets them up, and starts part. */
static int be_other(struct net *net, enum net_path path, bool last, int tell, int hear_from, net_part *part) {
	bool middle = path != NET_DIRECT && !last;
	signal(SIGPIPE, SIG_IGN);
	run_child();
	for (int i = 0; i < other_count; i++) close(others[i].tell);
	if (!net->loopback && unshare(CLONE_NEWNET) == -1) return -1;
	if (!net->loopback) trust_addresses();
	if (say(tell) == -1 || hear(hear_from) == -1) return -1;
	if (!net->loopback) {
		int own = path == NET_DIRECT || middle ? 0 : 1;
		if (set_up_end(net, own, 2, path == NET_DIRECT || middle ? -1 : 0) == -1) return -1;
		if (middle && (link_make(1, others[0].pid) == -1 || set_up_end(net, 1, 1, -1) == -1)) return -1;
		if (path == NET_ROUTED && middle &&
			(set("/proc/sys/net/ipv4/ip_forward", "1") == -1 ||
			 set("/proc/sys/net/ipv6/conf/all/forwarding", "1") == -1))
			return -1;
	}
	if (say(tell) == -1) return -1;
	for (int link = 0; link < 2 && !net->loopback; link++) link_await(link);
	if (part) part(net);
	else atomic_fetch_add(&net->counters->ready, 1);
	while (true) pause();
}

static int start_other(struct net *net, enum net_path path, bool last, net_part *part) {
	int to[2], from[2];
	if (pipe2(to, O_CLOEXEC) == -1 || pipe2(from, O_CLOEXEC) == -1) return -1;
	struct other *other = &others[other_count];
	pid_t child = fork();
	if (child == -1) return -1;
	if (child == 0) _exit(be_other(net, path, last, from[1], to[0], part) == -1 ? 1 : 0);
	close(from[1]);
	close(to[0]);
	*other = (struct other){.pid = child, .tell = to[1], .hear = from[0]};
	other_count++;
	return hear(other->hear);
}

static int wait_ready(const struct net *net, unsigned count) {
	const struct timespec pause_time = {.tv_nsec = 1000000};
	for (int ms = 0; ms < READY_MS; ms++) {
		if (atomic_load(&net->counters->ready) >= count) return 0;
		nanosleep(&pause_time, NULL);
	}
	return -1;
}

/* Starts the other processes and connects them by links. Returns 0, or -1 if this is impossible here. */
static int join(struct net *net, enum net_path path, net_part *receiver, net_part *middle) {
	bool three = path != NET_DIRECT;
	other_count = 0;
	atomic_store(&net->counters->stop, false);
	if (start_other(net, path, true, receiver) == -1) return -1;
	if (three && !(net->loopback && path == NET_ROUTED) && start_other(net, path, false, middle) == -1) return -1;
	struct net_counters *const c = net->counters;
	atomic_store(&c->sender, getpid());
	if (!atomic_load(&c->receiver)) atomic_store(&c->receiver, others[0].pid); /* unless it has started a program */
	if (path == NET_RELAYED) atomic_store(&c->relay, others[1].pid);
	if (!net->loopback && (link_make(0, others[three].pid) == -1 || set_up_end(net, 0, 1, three ? 1 : -1) == -1))
		return -1;
	for (int i = other_count - 1; i >= 0; i--) /* the middle one makes the last one's link */
		if (say(others[i].tell) == -1 || hear(others[i].hear) == -1) return -1;
	return 0;
}

static void end(struct net *net) {
	atomic_store(&net->counters->stop, true);
	for (int i = 0; i < other_count; i++) {
		kill(others[i].pid, SIGKILL);
		waitpid(others[i].pid, NULL, 0);
		close(others[i].tell);
		close(others[i].hear);
	}
	other_count = 0;
}

static int begin(struct net *net, struct run *run, enum net_path path, bool datagrams, net_part *receiver,
				 net_part *middle) {
	*net = (struct net){.settings = run->settings, .relayed = path == NET_RELAYED, .datagrams = datagrams};
	net->counters = mmap(NULL, sizeof *net->counters, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (net->counters == MAP_FAILED) return run_stop(run, "mmap", 0);
	char words[64];
	int family = run->settings->family, last = path == NET_DIRECT ? 0 : 1;
	net->receiver = address_of(family, last, 2, &net->length);
	net->relay = address_of(family, 0, 2, &net->length);
	net->loopback = !run_own_namespace(run);
	if (!net->loopback) trust_addresses();
	if (net->loopback || join(net, path, receiver, middle) == -1) {
		end(net);
		if (!link_plain(run->settings->link))
			return run_skip(run,
							"%s takes root, ip(8), veth(4), its module of the kernel and, if it is wireguard, wg(8)",
							link_name(run->settings->link));
		if (path == NET_ROUTED) return run_skip(run, "a router takes root, veth(4) and ip(8)");
		net->loopback = true;
		net->receiver = address_of(family, -1, 1, &net->length);
		net->relay = address_of(family, -1, 2, &net->length);
		if (join(net, path, receiver, middle) == -1) {
			end(net);
			return run_stop(run, "fork", 0);
		}
	}
	snprintf(words, sizeof words, "%s%sveth(4)", link_plain(run->settings->link) ? "" : link_name(run->settings->link),
			 link_plain(run->settings->link) ? "" : " over ");
	run_note(run, "path", net->loopback ? "the loopback: no veth(4) here" : words);
	if (!net->loopback) link_await(0);
	if (wait_ready(net, path == NET_DIRECT ? 1 : 2) == 0) return 0;
	end(net);
	errno = ETIMEDOUT;
	return run_stop(run, "waiting for the receiver", 0);
}

/* Returns the datagrams that were received, or the packets that left this namespace, without counting them again on the
 * interface below a link. */
static uint64_t packets(const struct net *net) {
	char line[512];
	uint64_t sum = 0;
	if (net->datagrams) return atomic_load(&net->counters->datagrams);
	FILE *in = fopen("/proc/self/net/dev", "r");
	while (in && fgets(line, sizeof line, in)) {
		char *at = strchr(line, ':');
		if (strstr(line, "wire")) continue;
		uint64_t field = 0;
		for (int i = 0; at && i < 10; i++) field = strtoull(at + (i == 0), &at, 10);
		sum += field;
	}
	if (in) fclose(in);
	return sum;
}

/* Returns how long all processors were busy, in ns. */
static int64_t busy_ns(void) {
	uint64_t tick[COUNTERS_TICKS], busy = 0;
	counters_ticks(tick);
	for (int i = 0; i < COUNTERS_TICKS; i++)
		if (i != COUNTERS_TICKS_IDLE && i != COUNTERS_TICKS_IOWAIT && i != COUNTERS_TICKS_STOLEN) busy += tick[i];
	return (int64_t)busy * 1000000000 / sysconf(_SC_CLK_TCK);
}

/* Returns the ns for a megabyte, or for a million datagrams if they were empty; if nothing came, all of them. */
static int64_t per_megabyte(int64_t ns, uint64_t bytes, uint64_t datagrams) {
	const double units = bytes ? (double)bytes : datagrams ? (double)datagrams : 1e6;
	return ns > 0 ? (int64_t)((double)ns * 1e6 / units) + 1 : 1;
}

/* Returns the processor time of a process so far, in ns, or 0 if there is none. */
static int64_t process_ns(pid_t pid) {
	clockid_t clock;
	return pid && clock_getcpuclockid(pid, &clock) == 0 ? (int64_t)(machine_seconds(clock) * 1e9) : 0;
}

/* Processor times, in ns. */
struct used {
	int64_t all, sender, receiver; /* all: of the relay, or of all processors */
};

static struct used used_so_far(const struct net *net) {
	const struct net_counters *c = net->counters;
	return (struct used){.all = net->relayed ? process_ns(atomic_load(&c->relay)) : busy_ns(),
						 .sender = process_ns(atomic_load(&c->sender)),
						 .receiver = process_ns(atomic_load(&c->receiver))};
}

/* Waits for the first bytes or datagrams, for at most READY_MS. */
static void await_first(const struct net_counters *c) {
	const struct timespec pause_time = {.tv_nsec = 1000000};
	for (int ms = 0; ms < READY_MS && !atomic_load(&c->received) && !atomic_load(&c->datagrams); ms++)
		nanosleep(&pause_time, NULL);
}

static int measure(struct net *net, struct run *run) {
	struct net_counters *c = net->counters;
	await_first(c);
	int64_t start = machine_clock_ns(), then = start;
	struct used used = used_so_far(net);
	uint64_t received = atomic_load(&c->received), sent = packets(net);
	for (unsigned n = 0; n < run->count; n++) {
		int64_t next = start + (int64_t)(n + 1) * NET_INTERVAL_MS * 1000000;
		struct timespec until = {.tv_sec = next / 1000000000, .tv_nsec = next % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		const int64_t now = machine_clock_ns(), passed = now - then;
		const struct used now_used = used_so_far(net);
		uint64_t now_received = atomic_load(&c->received), now_sent = packets(net);
		const int64_t all = now_used.all - used.all;
		run_point(run, n,
				  (int64_t[]){(int64_t)((double)(now_received - received) * 8e3 / (double)passed),
							  (int64_t)((double)(now_sent - sent) * 1e9 / (double)passed), all * 100 / passed,
							  per_megabyte(all, now_received - received, net->datagrams ? now_sent - sent : 0),
							  (now_used.sender - used.sender) * 100 / passed,
							  (now_used.receiver - used.receiver) * 100 / passed});
		then = now;
		used = now_used;
		received = now_received;
		sent = now_sent;
	}
	if (atomic_load(&c->received) || atomic_load(&c->datagrams)) return 0;
	errno = ETIMEDOUT;
	return run_stop(run, "nothing was received", 0);
}

int net_connect(const union net_address *to, socklen_t length) {
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, &to->any, length) == 0) return fd;
	close(fd);
	return -1;
}

int net_listen(const union net_address *at, socklen_t length) {
	int on = 1, fd = socket(at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1) return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, &at->any, length) == 0 && listen(fd, NET_STREAMS_MAX) == 0) return fd;
	close(fd);
	return -1;
}

union net_address net_port_of(const union net_address *address, unsigned number) {
	union net_address own = *address; /* sin_port and sin6_port have the same offset */
	own.v4.sin_port = htons((uint16_t)(ntohs(own.v4.sin_port) + STREAM_PORTS + number));
	return own;
}

void net_send(struct net *net, int fd) {
	static char block[NET_BLOCK];
	while (fd != -1 && !atomic_load_explicit(&net->counters->stop, memory_order_relaxed))
		if (send(fd, block, sizeof block, MSG_NOSIGNAL) == -1 && errno != EINTR) return;
}

struct stream_thread {
	struct net *net;
	unsigned number;
	net_stream *stream;
};

static void *run_thread(void *argument) {
	struct stream_thread own = *(struct stream_thread *)argument;
	free(argument);
	own.stream(own.net, own.number);
	return NULL;
}

int net_threads(struct net *net, net_stream *stream) {
	for (unsigned i = 0; i < net->settings->streams; i++) {
		pthread_t thread;
		struct stream_thread *own = malloc(sizeof *own);
		if (!own) return -1;
		*own = (struct stream_thread){.net = net, .number = i, .stream = stream};
		errno = pthread_create(&thread, NULL, run_thread, own);
		if (errno) {
			free(own);
			return -1;
		}
		pthread_detach(thread);
	}
	return 0;
}

static int receiver_listens; /* used by the receiver's process */

static void receive(struct net *net, unsigned number) {
	(void)number;
	int fd = accept(receiver_listens, NULL, NULL);
	char *block = malloc(NET_BLOCK);
	for (ssize_t n; block && fd != -1 && (n = recv(fd, block, NET_BLOCK, 0)) > 0;)
		atomic_fetch_add_explicit(&net->counters->received, (uint64_t)n, memory_order_relaxed);
	free(block);
}

void net_receiver(struct net *net) {
	receiver_listens = net_listen(&net->receiver, net->length);
	if (receiver_listens != -1 && net_threads(net, receive) == 0) atomic_fetch_add(&net->counters->ready, 1);
}

int net_run(struct run *run, enum net_path path, bool datagrams, net_part *receiver, net_part *middle,
			net_stream *sender) {
	static struct net net; /* static, since sending threads may use it until the process ends */
	if (begin(&net, run, path, datagrams, receiver, middle) == -1) return -1;
	int result = net_threads(&net, sender) == -1 ? run_stop(run, "thread", 0) : measure(&net, run);
	run_end(run);
	end(&net);
	return result;
}
