/* verdict.c - see verdict.h. */
#include "bench/verdict.h"

#include <stdio.h>

#include "io/io.h"

static bool client_was_bottleneck(const struct plan *plan, const struct run *r, char *text) {
	const struct histogram *duration = r->total.duration;
	unsigned processors = io_processors();
	double own_s = r->user_s + r->system_s - (double)r->total.spun_ns / 1e9;
	double busy = own_s / (r->elapsed_s * (plan->clients < processors ? plan->clients : processors));
	if (busy * 100 > CLIENT_BUSY_PERCENT) {
		snprintf(text, VERDICT_TEXT, "it was busy for %.0f %% of the time", busy * 100);
		return true;
	}
	int64_t late = histogram_percentile(&duration[DURATION_LATENESS], 99);
	int64_t whole = histogram_percentile(&duration[DURATION_WHOLE], 99);
	if (whole == -1) whole = plan->timeout_ns;
	bool in_time = late != -1 && (late <= CLIENT_LATE_NS || late * 100 <= whole * CLIENT_LATE_PERCENT);
	if (plan->rate <= 0 || in_time) return false;
	if (r->total.count[COUNT_WAITED])
		snprintf(text, VERDICT_TEXT, "%llu requests found all connections in use: more (-c), or a quicker server",
				 (unsigned long long)r->total.count[COUNT_WAITED]);
	else snprintf(text, VERDICT_TEXT, "requests were sent late: more threads (-t) may help");
	return true;
}

/* Names the counters that moved; false: none did. */
static bool counters_moved(const struct counters *c, char *text) {
	size_t n = 0;
	*text = '\0';
	for (int i = 0; i < COUNTERS && n < VERDICT_TEXT; i++)
		if (c->value[i])
			n += (size_t)snprintf(text + n, VERDICT_TEXT - n, "%s%s +%llu", n ? ", " : "", counter_name[i],
								  (unsigned long long)c->value[i]);
	return n > 0;
}

const char *verdict_of(const struct plan *plan, const struct run *r, char *text) {
	const struct measures *m = &r->total;
	const struct counters *c = &r->counters;
	snprintf(text, VERDICT_TEXT, "nothing was answered");
	if (!m->count[COUNT_ANSWERED]) return "FAIL";
	snprintf(text, VERDICT_TEXT, "%s ran out", m->failure[FAILURE_PORTS] ? "ports" : "descriptors");
	if (m->failure[FAILURE_PORTS] || m->failure[FAILURE_DESCRIPTORS]) return "LIMIT";
	if (client_was_bottleneck(plan, r, text)) return "CLIENT";
	snprintf(text, VERDICT_TEXT, "others on the host took %.1f %% of the processors",
			 100 * (double)c->stolen / (double)(c->ticks ? c->ticks : 1));
	if (c->stolen * 1000 > c->ticks * STOLEN_PER_MILLE) return "NOISY";
	if (counters_moved(c, text)) return "XPASS";
	*text = '\0';
	return "PASS";
}
