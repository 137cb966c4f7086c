/* run.c - see run.h. The main thread sleeps from second to second and adds up what the clients hand over. */
#include "bench/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/client.h"

enum { COLLECT_MS = 1000 };

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
	(void)number;
	interrupted = 1;
}

static double seconds(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double of_timeval(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static void note_usage(struct run *r, double sign) {
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	r->user_s += sign * of_timeval(usage.ru_utime);
	r->system_s += sign * of_timeval(usage.ru_stime);
}

/* Waits until some time or a signal. */
static void sleep_until(double when_s) {
	double left = when_s - seconds(CLOCK_MONOTONIC);
	if (left <= 0) return;
	struct timespec t = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
	(void)nanosleep(&t, NULL);
}

static bool collect(struct client **client, unsigned clients, struct measures *m) {
	bool running = false;
	for (unsigned i = 0; i < clients; i++) running |= client_collect(client[i], m);
	return running;
}

static void watch_clients(struct client **client, unsigned clients, double start_s, run_watch *watch, void *context,
						  struct run *r, struct measures *m) {
	/* the clients hand over at whole seconds; look a little later */
	const double step = COLLECT_MS / 1000.0, lag = 0.05;
	double from = 0;
	bool running = true, stopped = false, refused = false;
	for (unsigned n = 1; running; n++) {
		double until = start_s + n * step + lag;
		while (running && seconds(CLOCK_MONOTONIC) < until && (stopped || !interrupted)) {
			double soon = seconds(CLOCK_MONOTONIC) + lag;
			sleep_until(soon < until ? soon : until);
			running = collect(client, clients, m);
		}
		if ((interrupted || refused) && !stopped)
			for (unsigned i = 0; i < clients; i++) client_stop(client[i]);
		stopped |= interrupted || refused;
		double to = running ? n * step : seconds(CLOCK_MONOTONIC) - start_s;
		if (to > from) watch(context, from, to, m);
		measures_add(&r->total, m);
		measures_reset(m);
		refused = r->total.failure[FAILURE_REFUSED] && !r->total.connections; /* from the beginning */
		from = to;
	}
	r->elapsed_s = seconds(CLOCK_MONOTONIC) - start_s;
}

int run_plan(const struct plan *plan, run_watch *watch, void *context, struct run *r) {
	struct sigaction catch = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND}, before_int, before_term;
	struct client **client = calloc(plan->clients, sizeof(struct client *));
	struct measures *m = calloc(1, sizeof *m);
	unsigned started = 0;
	memset(r, 0, sizeof *r);
	interrupted = 0;
	if (!client || !m) {
		free(client);
		free(m);
		errno = ENOMEM;
		return -1;
	}
	sigaction(SIGINT, &catch, &before_int); /* a second one kills */
	sigaction(SIGTERM, &catch, &before_term);
	struct counters counters, counters_after;
	counters_read(&counters);
	note_usage(r, -1);
	r->started_s = seconds(CLOCK_REALTIME);
	double start_s = seconds(CLOCK_MONOTONIC);
	for (; started < plan->clients; started++)
		if (!(client[started] = client_start(plan, started, (int64_t)(start_s * 1e9)))) break;
	int error = started < plan->clients ? errno : 0;
	if (error)
		for (unsigned i = 0; i < started; i++) client_stop(client[i]);
	else watch_clients(client, plan->clients, start_s, watch, context, r, m);
	for (unsigned i = 0; i < started; i++) client_join(client[i]);
	r->interrupted = interrupted;
	note_usage(r, 1);
	counters_read(&counters_after);
	r->counters = counters_since(&counters_after, &counters);
	sigaction(SIGINT, &before_int, NULL);
	sigaction(SIGTERM, &before_term, NULL);
	free(client);
	free(m);
	errno = error;
	return error ? -1 : 0;
}
