/* verdict.c - see verdict.h. */
#include "bench/httpbench/verdict.h"

#include <string.h>
#include <sys/un.h>

#include "io/io.h"

static bool client_was_bottleneck(const struct plan *plan, const struct run *r, char *text) {
	const struct histogram *duration = r->total.duration;
	if (r->elapsed_s < VERDICT_SHORTEST_S) return false;
	unsigned processors = io_processors();
	double own_s = r->user_s + r->system_s - (double)r->total.spun_ns / 1e9;
	double busy = own_s / (r->usage_s * (plan->clients < processors ? plan->clients : processors));
	if (busy * 100 > VERDICT_BUSY_PERCENT) {
		snprintf(text, VERDICT_TEXT, "it was busy for %.0f %% of the time", busy * 100);
		return true;
	}
	int64_t late = histogram_percentile(&duration[DURATION_LATENESS], 99);
	int64_t whole = histogram_percentile(&duration[DURATION_WHOLE], 99);
	if (whole == -1) whole = plan->timeout_ns;
	bool in_time = late != -1 && (late <= VERDICT_LATE_NS || late * 100 <= whole * VERDICT_LATE_PERCENT);
	if (plan->rate <= 0 || in_time) return false;
	if (r->total.count[COUNT_WAITED])
		snprintf(text, VERDICT_TEXT, "%llu requests found all connections in use: more (-c), or a quicker server",
				 (unsigned long long)r->total.count[COUNT_WAITED]);
	else snprintf(text, VERDICT_TEXT, "requests were sent late: more threads (-t) may help");
	return true;
}

static void explain_nothing(const struct measures *m, char *text) {
	char statuses[MEASURES_TEXT];
	snprintf(text, VERDICT_TEXT, "nothing was answered");
	if (!m->failure[FAILURE_STATUS] || m->failure[FAILURE_STATUS] < measures_failed(m)) return;
	measures_statuses(m, statuses, sizeof statuses);
	snprintf(text, VERDICT_TEXT, "no answer had the right status: %s", statuses);
}

const char *verdict_of(const struct plan *plan, const struct run *r, char *text) {
	const struct measures *m = &r->total;
	if (!m->count[COUNT_ANSWERED]) {
		explain_nothing(m, text);
		return "FAIL";
	}
	snprintf(text, VERDICT_TEXT, "%s ran out", m->failure[FAILURE_PORTS] ? "ports" : "descriptors");
	if (m->failure[FAILURE_PORTS] || m->failure[FAILURE_DESCRIPTORS]) return "LIMIT";
	if (client_was_bottleneck(plan, r, text)) return "CLIENT";
	*text = '\0';
	if (counters_stolen(&r->counters, text, VERDICT_TEXT)) return "NOISY";
	return counters_moved(&r->counters, text, VERDICT_TEXT) ? "XPASS" : "PASS";
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
