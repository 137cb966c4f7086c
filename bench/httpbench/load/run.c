/* run.c - see run.h. The main thread adds up what the clients hand over each second. */
#include "bench/httpbench/load/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/httpbench/load/client.h"
#include "bench/interrupt.h"
#include "bench/machine.h"

enum { COLLECT_MS = 1000 };

static double of_timeval(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static void note_usage(struct run *r, double sign) {
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	r->user_s += sign * of_timeval(usage.ru_utime);
	r->system_s += sign * of_timeval(usage.ru_stime);
}

/* Sleeps until when_s or a signal. */
static void sleep_until(double when_s) {
	double left = when_s - machine_seconds(CLOCK_MONOTONIC);
	if (left <= 0) return;
	struct timespec t = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
	(void)nanosleep(&t, NULL);
}

static bool collect(struct client **client, unsigned clients, struct measures *m) {
	bool running = false;
	for (unsigned i = 0; i < clients; i++) running |= client_collect(client[i], m);
	return running;
}

/* Stops the clients. Returns the time, in seconds since the start. */
static double stop_clients(struct client **client, unsigned clients, double start_s) {
	for (unsigned i = 0; i < clients; i++) client_stop(client[i]);
	return machine_seconds(CLOCK_MONOTONIC) - start_s;
}

/* Returns whether nothing has worked, and the reason is known. */
static bool is_hopeless(const struct measures *m) {
	if (!m->count[COUNT_CONNECTED] && m->connect_error) return true;
	if (measures_no_upgrade(m)) return true;
	return !m->count[COUNT_ANSWERED] && !*m->tls && *m->tls_failed;
}

static int64_t of_seconds(double s) { return (int64_t)(s * 1e9); }

/* Sets how long the server was under load: until the duration has passed or the run was stopped; if all requests are
 * done, until the last one was answered or failed. elapsed_s 0: that is not known. */
static void note_load(const struct plan *plan, struct run *r, double start_s, double stopped_s) {
	const struct measures *m = &r->total;
	const bool all = plan->requests && m->count[COUNT_ANSWERED] + measures_failed(m) >= plan->requests;
	const int64_t last_ns = all ? m->ended_ns : m->last_ns;
	const double last_s = last_ns ? (double)(last_ns - of_seconds(start_s)) / 1e9 : 0;
	double load_s = (double)plan->duration_ns / 1e9;
	if (stopped_s > 0 && (load_s == 0 || stopped_s < load_s)) load_s = stopped_s;
	if (load_s == 0 || (all && last_s < load_s)) load_s = last_s;
	r->elapsed_s = load_s;
	r->after_s = last_s > load_s ? last_s - load_s : 0;
}

/* Takes an interval into account. With a new stage begins a new trend, unless a queue has grown already. */
static void note_trend(const struct plan *plan, struct run *r, double middle_s, const struct histogram *whole) {
	int64_t first_ns, last_ns;
	const unsigned stage = stages_at(&plan->stages, middle_s);
	if (stage != r->stage) {
		if (trend_grows(&r->trend, run_trend_rate(plan, r), &first_ns, &last_ns)) return;
		r->trend = (struct trend){0};
		r->stage = stage;
	}
	run_note_trend(r, whole);
}

/* Waits until all clients have ended, and fills in the totals and how long the run took. */
static void watch_clients(const struct plan *plan, struct client **client, double start_s, run_watch *watch,
						  void *context, struct run *r, struct measures *m) {
	/* clients hand over their results at whole seconds; they are collected a little later */
	const double step = COLLECT_MS / 1000.0, lag = 0.05;
	double from = 0, stopped_s = 0;
	bool running = true;
	for (unsigned n = 1; running; n++) {
		double until = start_s + n * step + lag;
		while (running && machine_seconds(CLOCK_MONOTONIC) < until) {
			double soon = machine_seconds(CLOCK_MONOTONIC) + lag;
			sleep_until(soon < until ? soon : until);
			running = collect(client, plan->clients, m);
			if (interrupt_came && stopped_s == 0) stopped_s = stop_clients(client, plan->clients, start_s);
		}
		measures_add(&r->total, m);
		note_trend(plan, r, (from + n * step) / 2, &m->duration[DURATION_WHOLE]);
		if (!running) note_load(plan, r, start_s, stopped_s);
		double to = running ? n * step : r->elapsed_s;
		if (to <= from) to = machine_seconds(CLOCK_MONOTONIC) - start_s; /* what ended after the run */
		watch(context, from, to, m);
		measures_reset(m);
		from = to;
		if (stopped_s == 0 && is_hopeless(&r->total)) stopped_s = stop_clients(client, plan->clients, start_s);
	}
}

/* Makes all clients before the first one is started, so that this is not measured. Returns 0, or -1 with errno. */
static int make_clients(struct client **client, const struct plan *plan) {
	for (unsigned i = 0; i < plan->clients; i++)
		if (!(client[i] = client_new(plan, i))) return -1;
	return 0;
}

/* Starts the clients. Returns 0, or -1 with errno. */
static int start_clients(struct client **client, unsigned clients, double start_s) {
	for (unsigned i = 0; i < clients; i++) {
		if (client_start(client[i], of_seconds(start_s)) == 0) continue;
		int error = errno;
		for (unsigned j = 0; j < i; j++) client_stop(client[j]);
		errno = error;
		return -1;
	}
	return 0;
}

int run_plan(const struct plan *plan, run_watch *watch, void *context, struct run *r) {
	struct client **client = calloc(plan->clients, sizeof(struct client *));
	struct measures *m = calloc(1, sizeof *m);
	struct counters counters, counters_after;
	memset(r, 0, sizeof *r);
	interrupt_catch(); /* for good, since a signal may come between two runs */
	errno = ENOMEM;
	int result = client && m ? make_clients(client, plan) : -1;
	struct others *others = others_begin((const struct sockaddr *)&plan->target->address, plan->backends);
	counters_read(&counters);
	note_usage(r, -1);
	r->started_s = machine_seconds(CLOCK_REALTIME);
	double start_s = machine_seconds(CLOCK_MONOTONIC);
	if (result == 0) result = start_clients(client, plan->clients, start_s);
	int error = errno;
	if (result == 0) watch_clients(plan, client, start_s, watch, context, r, m);
	note_usage(r, 1); /* what follows is not part of the load */
	r->usage_s = machine_seconds(CLOCK_MONOTONIC) - start_s;
	if (r->elapsed_s <= 0) r->elapsed_s = r->usage_s;
	(void)others_end(others, r->others);
	for (unsigned i = 0; client && i < plan->clients; i++) client_free(client[i]);
	r->interrupted = interrupt_came;
	counters_read(&counters_after);
	r->counters = counters_since(&counters_after, &counters);
	free(client);
	free(m);
	errno = error;
	return result;
}
