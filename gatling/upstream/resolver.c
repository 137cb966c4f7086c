/* resolver.c - see resolver.h. What was found is in one of two places, and what is found next goes to the other one: a
 * process that ends meanwhile leaves no reader waiting. */
#include "gatling/upstream/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/sandbox/child.h"
#include "gatling/sandbox/sandbox.h"
#include "io/io.h"

enum { STACK = 256 * 1024 }; /* bytes of a thread; modules of nsswitch.conf(5) run on it */
enum { NOT_YET = 1000 };     /* no error of getaddrinfo(3) */

/* The addresses of a host, or why there are none. */
struct host_addresses {
	int error; /* 0, NOT_YET or that of getaddrinfo(3) */
	unsigned count;
	struct peer at[RESOLVED_MAX];
};

/* What the server and the process share of each host. */
struct resolved_host {
	atomic_bool asked; /* somebody has, since it was looked up */
	atomic_uint turn;  /* found[turn % 2] is valid */
	struct host_addresses found[2];
};

struct resolver {
	struct child child;
	unsigned count;
	char host[UPSTREAM_ALLOWED_MAX][UPSTREAM_HOST_MAX];
	struct resolved_host *of; /* for each */
};

/* --- the process --- */

struct resolving_thread {
	const char *host; /* NULL: it has not been started */
	struct resolved_host *of;
};

static int compare(const void *a, const void *b) { return memcmp(a, b, sizeof(struct peer)); }

/* Looks up a host. Its addresses are in an order of their own, as those of a name server change. */
static void look_up(const struct resolving_thread *t, struct host_addresses *found) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *all = NULL;
	int error = getaddrinfo(t->host, NULL, &hints, &all);
	hints.ai_flags = 0;
	if (error == EAI_NONAME) error = getaddrinfo(t->host, NULL, &hints, &all); /* there may be only a loopback */
	*found = (struct host_addresses){.error = error};
	for (const struct addrinfo *one = error ? NULL : all; one && found->count < RESOLVED_MAX; one = one->ai_next) {
		const struct peer peer = peer_of(one->ai_addr);
		bool known = false;
		for (unsigned i = 0; i < found->count; i++) known |= compare(&found->at[i], &peer) == 0;
		if (!known) found->at[found->count++] = peer;
	}
	if (!error) freeaddrinfo(all);
	qsort(found->at, found->count, sizeof *found->at, compare);
}

/* Returns whether an error says that there are no addresses, so that earlier ones are given up. */
static bool is_final(int error) {
	return !error || error == EAI_NONAME
#ifdef EAI_NODATA
		   || error == EAI_NODATA
#endif
		;
}

static void publish(struct resolved_host *r, const struct host_addresses *found) {
	const unsigned turn = atomic_load(&r->turn);
	const bool keeps = !is_final(found->error) && r->found[turn % 2].count;
	r->found[(turn + 1) % 2] = keeps ? r->found[turn % 2] : *found;
	atomic_store(&r->turn, turn + 1);
}

static void *look_up_for_ever(void *thread) {
	const struct resolving_thread *t = thread;
	const struct timespec pause = {.tv_sec = RESOLVE_MS / 1000};
	for (unsigned unused = 0;; nanosleep(&pause, NULL)) {
		struct host_addresses found;
		unused = atomic_exchange(&t->of->asked, false) ? 0 : unused + 1;
		if (unused && (unused - 1) % (RESOLVE_UNUSED_MS / RESOLVE_MS)) continue;
		look_up(t, &found);
		publish(t->of, &found);
	}
	return NULL;
}

/* Starts the threads that are lacking. Returns whether all run. */
static bool start_threads(const struct resolver *r, const pthread_attr_t *small) {
	static struct resolving_thread thread[UPSTREAM_ALLOWED_MAX];
	static notice_time next;
	bool all = true;
	pthread_t id;
	for (unsigned i = 0; i < r->count; i++) {
		if (thread[i].host) continue;
		thread[i] = (struct resolving_thread){.host = r->host[i], .of = &r->of[i]};
		const int error = pthread_create(&id, small, look_up_for_ever, &thread[i]);
		if (!error) continue;
		all = false;
		thread[i].host = NULL;
		if (notice_due(&next)) (void)notice_cannot("look up the upstream", r->host[i], strerror(error));
	}
	return all;
}

__attribute__((noreturn)) static void serve(const struct resolver *r, int channel, bool sandbox,
											const struct account *user) {
	struct pollfd server = {.fd = channel, .events = POLLIN};
	pthread_attr_t small;
	io_close_others(&channel, 1);
	const char *wrong = sandbox_enter_resolver(sandbox, user);
	if (wrong) _exit(notice_cannot("look up upstreams as the user who serves", NULL, wrong));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	while (poll(&server, 1, start_threads(r, &small) ? -1 : RESOLVE_MS) <= 0) {}
	_exit(0); /* the server has ended */
}

/* --- the server --- */

static void add(struct resolver *r, struct slice host) {
	for (unsigned i = 0; i < r->count; i++)
		if (slice_equal_nocase(slice_of(r->host[i]), host)) return;
	for (size_t i = 0; i < host.length; i++) r->host[r->count][i] = text_lower(host.at[i]);
	r->of[r->count++].found[0].error = NOT_YET;
}

int resolver_start(const struct upstreams_allowed *allowed, bool sandbox, const struct account *user,
				   struct resolver **resolver) {
	static struct resolver one;
	struct resolver *r = &one;
	*resolver = NULL;
	if (!upstreams_allow_names(allowed)) return 0;
	r->of = mmap(NULL, UPSTREAM_ALLOWED_MAX * sizeof *r->of, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->of == MAP_FAILED) return -1;
	for (unsigned i = 0; i < allowed->count; i++)
		if (allowed->at[i].host.length) add(r, allowed->at[i].host);
	r->child = CHILD_NONE;
	const int forked = child_fork(&r->child, SOCK_STREAM);
	if (forked == -1) return -1;
	if (forked == 0) serve(r, r->child.channel, sandbox, user);
	*resolver = r;
	return 0;
}

/* Copies what was found of a host; again, if this process was stopped meanwhile, so that the place has been reused. */
static void read_found(struct resolved_host *one, struct host_addresses *found) {
	unsigned turn;
	do {
		turn = atomic_load(&one->turn);
		*found = one->found[turn % 2];
	} while (atomic_fetch_add(&one->turn, 0) != turn); /* not a load, which could precede the copy */
	if (found->count > RESOLVED_MAX) found->count = 0;
}

void resolver_wait(const struct resolver *r) {
	const struct timespec pause = {.tv_nsec = 10 * 1000000};
	const int64_t until_ms = clock_ms() + RESOLVE_FIRST_MS;
	for (unsigned i = 0; r && i < r->count && clock_ms() < until_ms;) {
		if (atomic_load(&r->of[i].turn)) i++;
		else nanosleep(&pause, NULL);
	}
}

void resolver_stop(struct resolver *r) {
	if (!r) return;
	child_stop(&r->child);
	munmap(r->of, UPSTREAM_ALLOWED_MAX * sizeof *r->of);
}

unsigned resolver_find(struct resolver *r, const char *host, struct peer *at, const char **why) {
	struct host_addresses found = {.error = NOT_YET};
	for (unsigned i = 0; r && i < r->count; i++) {
		if (strcmp(r->host[i], host) != 0) continue;
		atomic_store_explicit(&r->of[i].asked, true, memory_order_relaxed);
		read_found(&r->of[i], &found);
		break;
	}
	memcpy(at, found.at, found.count * sizeof *at);
	if (!found.count) *why = found.error == NOT_YET ? "no name server has answered yet" : gai_strerror(found.error);
	return found.count;
}
