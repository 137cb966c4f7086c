/* verdict.c - see verdict.h. */
#include "bench/httpbench/verdict.h"

#include <string.h>
#include <sys/un.h>

#include "io/io.h"

const char *const verdict_name[VERDICTS] = {
	[VERDICT_PASS] = "PASS",
	[VERDICT_XPASS] = "XPASS",
	[VERDICT_NOISY] = "NOISY",
	[VERDICT_FAILED] = "FAILED",
	[VERDICT_CONNECTIONS] = "CLIENT",
	[VERDICT_LATE] = "CLIENT",
	[VERDICT_OVERLOADED] = "OVERLOADED",
	[VERDICT_CLIENT] = "CLIENT",
	[VERDICT_LIMIT] = "LIMIT",
	[VERDICT_NOTHING] = "FAILED",
};

bool verdict_is_of_client(enum verdict v) {
	return v == VERDICT_NOISY || v == VERDICT_LATE || v == VERDICT_CLIENT || v == VERDICT_LIMIT;
}

static bool nothing_answered(const struct measures *m, char *text) {
	char statuses[MEASURES_TEXT];
	if (m->count[COUNT_ANSWERED]) return false;
	snprintf(text, VERDICT_TEXT, "nothing was answered");
	if (!m->failure[FAILURE_STATUS] || m->failure[FAILURE_STATUS] < measures_failed(m)) return true;
	measures_statuses(m, statuses, sizeof statuses);
	snprintf(text, VERDICT_TEXT, "no answer had the right status: %s", statuses);
	return true;
}

static bool ran_out(const struct measures *m, char *text) {
	snprintf(text, VERDICT_TEXT, "%s ran out", m->failure[FAILURE_PORTS] ? "ports" : "descriptors");
	return m->failure[FAILURE_PORTS] || m->failure[FAILURE_DESCRIPTORS];
}

static bool was_busy(const struct plan *plan, const struct run *r, char *text) {
	const unsigned processors = io_processors();
	const double own_s = r->user_s + r->system_s - (double)r->total.spun_ns / 1e9;
	const double busy = own_s / (r->usage_s * (plan->clients < processors ? plan->clients : processors));
	snprintf(text, VERDICT_TEXT, "it was busy for %.0f %% of the time", busy * 100);
	return r->elapsed_s >= VERDICT_SHORTEST_S && busy * 100 > VERDICT_BUSY_PERCENT;
}

bool verdict_overloaded(const struct trend *trend, double per_s, char *text) {
	int64_t first_ns, last_ns;
	if (!trend_grows(trend, per_s, &first_ns, &last_ns)) return false;
	snprintf(text, VERDICT_TEXT,
			 "a queue grew: even the quickest answers took %.4g ms in the first quarter, and %.4g ms in the last",
			 (double)first_ns / 1e6, (double)last_ns / 1e6);
	return true;
}

/* Returns whether requests began late, in open loop. */
static bool was_late(const struct plan *plan, const struct run *r) {
	const struct histogram *duration = r->total.duration;
	const int64_t late = histogram_percentile(&duration[DURATION_LATENESS], 99);
	int64_t whole = histogram_percentile(&duration[DURATION_WHOLE], 99);
	if (whole == -1) whole = plan->timeout_ns;
	const bool in_time = late != -1 && (late <= VERDICT_LATE_NS || late * 100 <= whole * VERDICT_LATE_PERCENT);
	return plan_open_loop(plan) && r->elapsed_s >= VERDICT_SHORTEST_S && !in_time;
}

static bool failed(const struct measures *m, char *text) {
	const double failed = (double)measures_failed(m), all = failed + (double)m->count[COUNT_ANSWERED];
	snprintf(text, VERDICT_TEXT, "%.3g %% of the requests", failed * 100 / all);
	return failed * 1000 > all * VERDICT_FAILED_PER_MILLE;
}

static bool waited_for_processors(const struct plan *plan, const struct run *r, char *text) {
	const double percent = run_queued_percent(plan, r);
	snprintf(text, VERDICT_TEXT, "it waited for a processor for %.0f %% of the time: %sthe server or others took it",
			 percent, plan->clients > io_processors() ? "its threads, " : "");
	return percent > VERDICT_QUEUED_PERCENT;
}

enum verdict verdict_of(const struct plan *plan, const struct run *r, char *text) {
	const struct measures *m = &r->total;
	if (nothing_answered(m, text)) return VERDICT_NOTHING;
	if (ran_out(m, text)) return VERDICT_LIMIT;
	if (was_busy(plan, r, text)) return VERDICT_CLIENT;
	if (plan_open_loop(plan) && verdict_overloaded(&r->trend, run_trend_rate(plan, r), text)) {
		const size_t length = strlen(text);
		if (plan->stages.count)
			snprintf(text + length, VERDICT_TEXT - length, ", of the stage until %.0f s",
					 plan->stages.stage[r->stage].until_s);
		return VERDICT_OVERLOADED;
	}
	if (was_late(plan, r)) {
		snprintf(text, VERDICT_TEXT, "requests were sent late: more threads (-t) may help");
		if (!m->count[COUNT_WAITED]) return VERDICT_LATE;
		snprintf(text, VERDICT_TEXT, "%llu requests found all connections in use: more (-c), or a quicker server",
				 (unsigned long long)m->count[COUNT_WAITED]);
		return VERDICT_CONNECTIONS;
	}
	if (failed(m, text)) return VERDICT_FAILED;
	if (*r->others) {
		snprintf(text, VERDICT_TEXT, "%s", r->others);
		return VERDICT_NOISY;
	}
	if (counters_stolen(&r->counters, text, VERDICT_TEXT) || waited_for_processors(plan, r, text)) return VERDICT_NOISY;
	*text = '\0';
	return counters_moved(&r->counters, text, VERDICT_TEXT) ? VERDICT_XPASS : VERDICT_PASS;
}

/* Returns what the client connects to: the path of --unix, or the URL. */
static const char *place_of(const struct target *t) {
	return t->address.ss_family == AF_UNIX ? ((const struct sockaddr_un *)&t->address)->sun_path : t->url;
}

bool verdict_explain(FILE *out, const struct plan *p, const struct measures *m) {
	const unsigned long long opened = m->count[COUNT_CONNECTED];
	if (*m->source_failed)
		fprintf(out, "httpbench: cannot connect from %s: it is not an address of this machine\n", m->source_failed);
	else if (m->failure[FAILURE_PORTS])
		fprintf(out, "httpbench: no port was left after %llu connections: --source 127.0.1.0/24 adds addresses\n",
				opened);
	else if (m->failure[FAILURE_DESCRIPTORS])
		fprintf(out, "httpbench: no descriptor was left after %llu connections: more threads have more\n", opened);
	else if (!opened && m->connect_error)
		fprintf(out, "httpbench: cannot connect to %s: %s\n", place_of(p->target), strerror(m->connect_error));
	else if (!*m->tls && *m->tls_failed) fprintf(out, "httpbench: no TLS with %s: %s\n", p->target->url, m->tls_failed);
	else if (measures_no_upgrade(m))
		fprintf(out, "httpbench: no WebSocket with %s: %s\n", p->target->url, m->websocket_failed);
	else return false;
	return true;
}
