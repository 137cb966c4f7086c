/* truth.c - an HTTP/1.1 server whose truth is known: what a load generator must report about it.
 *
 *     truth [OPTION]...
 *
 * Prints its port on 127.0.0.1 and answers GET, on persistent connections, until it is killed. The options add up:
 *
 * --service US    An answer takes US microseconds (default 0), each by itself: every percentile is US or little more,
 *                 and N connections in closed loop get N * 1e6 / US answers a second at most.
 * --slow N US     Every Nth request takes US instead: 1 / N of the durations are US, the others --service.
 * --rate N        One queue, in order of arrival, that is served N times a second: above N requests a second, the
 *                 duration grows by (offered / N - 1) seconds with each second; closed loop gets N a second.
 * --stall EVERY FOR   For FOR microseconds at the end of each EVERY, counted from its start, nothing is answered: in
 *                 open loop FOR / EVERY of the requests wait, on average FOR / 2 and at most FOR.
 * --fail N        Every Nth request is answered 503: 1 / N of them have failed.
 * --short N       Every Nth answer promises a byte more than it has, and the connection ends: 1 / N have failed.
 *
 * "Every Nth" counts the requests of all connections. Each connection has a thread, which sleeps while it waits: the
 * truth holds as long as the machine wakes it up in time. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 8192, BACKLOG = 4096, STACK_BYTES = 64 * 1024, NS_PER_US = 1000, NS_PER_S = 1000000000 };

static const char content[] = "true\n";

/* From the options; 0: the option is not given. */
static int64_t service_ns, slow_nth, slow_ns, interval_ns, stall_every_ns, stall_for_ns, fail_nth, short_nth;

static int64_t start_ns;
static atomic_llong requests;
static _Atomic int64_t free_ns; /* when the queue of --rate has served all that came so far */

__attribute__((noreturn)) static void fail(const char *call) {
	fprintf(stderr, "truth: %s: %s\n", call, strerror(errno));
	exit(1);
}

static int64_t now_ns(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(int64_t ns) {
	const struct timespec t = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

/* Returns whether a request is one of every nth. */
static bool is_nth(long long number, int64_t nth) { return nth && number % nth == 0; }

/* Returns when the queue has served a request that comes now. */
static int64_t queue(int64_t now) {
	int64_t before = free_ns, after;
	do after = (before > now ? before : now) + interval_ns;
	while (!atomic_compare_exchange_weak(&free_ns, &before, after));
	return after;
}

/* Returns the end of the stall that contains the time, or the time. */
static int64_t after_stall(int64_t ns) {
	if (!stall_every_ns) return ns;
	const int64_t since = (ns - start_ns) % stall_every_ns;
	return since < stall_every_ns - stall_for_ns ? ns : ns + stall_every_ns - since;
}

/* Answers a request. Returns whether the connection stays open. */
static bool answer(int fd) {
	const long long number = atomic_fetch_add(&requests, 1) + 1;
	const int64_t now = now_ns();
	int64_t due = interval_ns ? queue(now) : now;
	due = after_stall(due + (is_nth(number, slow_nth) ? slow_ns : service_ns));
	if (due > now) sleep_until(due);
	const bool lies = is_nth(number, short_nth);
	char text[256];
	const int length =
		snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s",
				 is_nth(number, fail_nth) ? "503 Service Unavailable" : "200 OK", sizeof content - 1 + lies, content);
	return send(fd, text, (size_t)length, MSG_NOSIGNAL) == length && !lies;
}

static void *serve(void *argument) {
	const int fd = (int)(intptr_t)argument;
	char head[HEAD_MAX + 1];
	size_t used = 0;
	bool open = true;
	while (open && used < HEAD_MAX) {
		const ssize_t n = recv(fd, head + used, HEAD_MAX - used, 0);
		if (n <= 0) break;
		used += (size_t)n;
		head[used] = '\0';
		for (const char *end; open && (end = strstr(head, "\r\n\r\n"));) {
			open = answer(fd);
			used -= (size_t)(end + 4 - head);
			memmove(head, end + 4, used + 1);
		}
	}
	close(fd);
	return NULL;
}

/* Returns the number in an argument, from 1 to most. */
static int64_t number(const char *option, const char *text, int64_t most) {
	char *end;
	const long long value = text ? strtoll(text, &end, 10) : 0;
	if (value >= 1 && value <= most && !*end) return value;
	fprintf(stderr, "truth: %s takes whole numbers from 1 to %lld\n", option, (long long)most);
	exit(2);
}

static void parse(char **argv) {
	static const struct {
		const char *name;
		int64_t *value[2];
		int64_t unit[2]; /* what the numbers are multiplied by; 0: there is no second one */
	} options[] = {
		{"--service", {&service_ns}, {NS_PER_US}},
		{"--slow", {&slow_nth, &slow_ns}, {1, NS_PER_US}},
		{"--rate", {&interval_ns}, {1}},
		{"--stall", {&stall_every_ns, &stall_for_ns}, {NS_PER_US, NS_PER_US}},
		{"--fail", {&fail_nth}, {1}},
		{"--short", {&short_nth}, {1}},
	};
	const size_t count = sizeof options / sizeof *options;
	while (*++argv) {
		size_t i = 0;
		while (i < count && strcmp(*argv, options[i].name) != 0) i++;
		if (i == count) {
			fprintf(stderr, "truth: the option %s is not known\n", *argv);
			exit(2);
		}
		for (int j = 0; j < 2 && options[i].unit[j]; j++)
			*options[i].value[j] = number(options[i].name, *++argv, NS_PER_S) * options[i].unit[j];
	}
	if (interval_ns) interval_ns = NS_PER_S / interval_ns;
	if (stall_every_ns && stall_for_ns >= stall_every_ns) {
		fputs("truth: --stall: FOR is less than EVERY\n", stderr);
		exit(2);
	}
}

int main(int argc, char **argv) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof address;
	const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_attr_t attributes;
	if (argc) parse(argv);
	if (fd == -1 || bind(fd, (struct sockaddr *)&address, length) == -1 || listen(fd, BACKLOG) == -1 ||
		getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		fail("socket");
	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	start_ns = now_ns();
	printf("%d\n", ntohs(address.sin_port));
	if (fflush(stdout) == EOF) fail("stdout");
	for (;;) {
		const int peer = accept(fd, NULL, NULL);
		pthread_t thread;
		if (peer == -1 && (errno == ECONNABORTED || errno == EINTR)) continue;
		if (peer == -1) fail("accept");
		(void)setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (pthread_create(&thread, &attributes, serve, (void *)(intptr_t)peer) != 0) close(peer);
	}
}
