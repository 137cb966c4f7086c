/* files.c - see files.h. */
#include "bench/httpbench/files.h"

#include <stdlib.h>

#include "bench/httpbench/hlog.h"
#include "bench/httpbench/report.h"
#include "bench/httpbench/verdict.h"

enum { LOG_VERSION = 1 }; /* of the meaning of --hlog */

static const double json_percentile[] = {50, 75, 90, 95, 99, 99.9, 99.99, 100};

static unsigned long long u(uint64_t n) { return n; }

/* Writes a string. Bytes that are not ASCII become %FF and so on, which in a URL means the same. */
static void json_string(FILE *out, const char *text) {
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\') putc('\\', out);
		if ((unsigned char)*text < 0x80) putc(*text, out);
		else fprintf(out, "%%%02X", (unsigned char)*text);
	}
	putc('"', out);
}

/* Prints a name with its number, or null instead of 0, and a comma. */
static void json_unless_0(FILE *out, const char *name, double value) {
	if (value != 0) fprintf(out, " \"%s\": %.15g,", name, value);
	else fprintf(out, " \"%s\": null,", name);
}

static void json_durations(FILE *out, const struct histogram *h) {
	fprintf(out, "{\"samples\": %llu, \"censored\": %llu, ", u(h->samples), u(h->censored));
	if (h->samples)
		fprintf(out, "\"mean_ns\": %.1f, \"deviation_ns\": %.1f, \"minimum_ns\": %lld, ", histogram_mean(h),
				histogram_deviation(h), (long long)h->least);
	else fputs("\"mean_ns\": null, \"deviation_ns\": null, \"minimum_ns\": null, ", out);
	fputs("\"percentiles_ns\": {", out);
	for (unsigned i = 0; i < sizeof json_percentile / sizeof *json_percentile; i++) {
		int64_t ns = histogram_percentile(h, json_percentile[i]);
		fprintf(out, "%s\"%g\": ", i ? ", " : "", json_percentile[i]);
		if (ns == -1) fputs("null", out);
		else fprintf(out, "%lld", (long long)ns);
	}
	fputs("}}", out);
}

/* Prints what is only known of a single run, not of merged ones. */
static void json_plan(FILE *out, const struct plan *plan, const struct run *r) {
	char why[VERDICT_TEXT];
	fputs(" \"url\": ", out);
	json_string(out, plan->target->url);
	fprintf(out, ", \"urls\": %u, \"protocol\": \"%s\",\n \"connections\": %u, \"threads\": %u, \"pipeline\": %u,",
			plan->targets,
			plan->http2       ? "HTTP/2"
			: plan->http3     ? "HTTP/3"
			: plan->websocket ? "WebSocket"
							  : "HTTP/1.1",
			plan->connections, plan->clients, plan->depth);
	json_unless_0(out, "per_connection", plan->per_connection);
	json_unless_0(out, "rate", plan->rate);
	json_unless_0(out, "requests", (double)plan->requests);
	json_unless_0(out, "duration_s", (double)plan->duration_ns / 1e9);
	fprintf(out, "\n \"interrupted\": %s, \"verdict\": \"%s\", \"reason\": ", r->interrupted ? "true" : "false",
			verdict_name[verdict_of(plan, r, why)]);
	json_string(out, why);
	fputs(",\n \"counters\": {", out);
	for (int i = 0; i < COUNTERS; i++)
		fprintf(out, "%s\"%s\": %llu", i ? ", " : "", counters_name[i], u(r->counters.value[i]));
	fputs("},\n", out);
}

void files_json(FILE *out, const struct plan *plan, const struct run *r, double answered_per_s,
				const struct staged *staged) {
	const struct measures *m = &r->total;
	fprintf(out,
			"{\"timeout_ns\": %lld, \"started_s\": %.3f, \"elapsed_s\": %.6f, \"after_s\": %.6f, \"answered_per_s\": "
			"%.15g,\n",
			(long long)plan->timeout_ns, r->started_s, r->elapsed_s, r->after_s, answered_per_s);
	if (plan->clients) json_plan(out, plan, r);
	for (int i = 0; i < COUNTS; i++) fprintf(out, " \"%s\": %llu,", count_name[i], u(m->count[i]));
	fputs("\n", out);
	if (*m->tls) fprintf(out, " \"tls\": \"%s\",\n", m->tls);
	fprintf(out, " \"user_s\": %.6f, \"system_s\": %.6f, \"waiting_s\": %.6f,\n \"failed\": {", r->user_s, r->system_s,
			(double)m->spun_ns / 1e9);
	for (int i = 0; i < FAILURES; i++) fprintf(out, "%s\"%s\": %llu", i ? ", " : "", failure_name[i], u(m->failure[i]));
	fputs("},\n \"statuses\": {", out);
	for (int i = 0, n = 0; i < MEASURES_STATUSES; i++)
		if (m->status[i]) fprintf(out, "%s\"%d\": %llu", n++ ? ", " : "", i, u(m->status[i]));
	fputs("},\n", out);
	if (staged) staged_json(out, staged);
	fputs(" \"durations\": {", out);
	for (int i = 0; i < DURATIONS; i++) {
		fprintf(out, "%s\n  \"%s\": ", i ? "," : "", duration_name[i]);
		json_durations(out, &m->duration[i]);
	}
	fputs("\n }\n}\n", out);
}

void files_tsv_begin(FILE *out) {
	fputs("# from_s\tto_s\tanswered\tfailed\tbytes\twhole_50_ns\twhole_99_ns\twhole_99.9_ns\twhole_100_ns\n", out);
}

void files_tsv_line(FILE *out, double from_s, double to_s, const struct measures *m) {
	fprintf(out, "%.6f\t%.6f\t%llu\t%llu\t%llu", from_s, to_s, u(m->count[COUNT_ANSWERED]), u(measures_failed(m)),
			u(m->count[COUNT_BYTES]));
	for (int i = 0; i < REPORT_BRIEF; i++) {
		int64_t ns = histogram_percentile(&m->duration[DURATION_WHOLE], report_brief[i]);
		if (ns == -1) fputs("\tNA", out);
		else fprintf(out, "\t%lld", (long long)ns);
	}
	fputs("\n", out);
}

/* [Plan:] must be the same in all logs that are merged; [Rank:] differs. */
void files_hlog_begin(FILE *out, const struct plan *p, double started_s) {
	hlog_begin(out, started_s);
	fprintf(out,
			"#[Plan: version %d url %s urls %u rate %.15g arrival %d per_connection %u pipeline %u "
			"timeout_s %.3f ranks %u http2 %d window %u connection_window %u content %zu stages %u%s ]\n",
			LOG_VERSION, p->target->url, p->targets, p->rate, p->arrival, p->per_connection, p->depth,
			(double)p->timeout_ns / 1e9, p->ranks, p->http2, p->window, p->window_all, p->content.length,
			p->stages.count,
			p->websocket ? " websocket 1"
			: p->http3   ? " http3 1"
						 : "");
	fprintf(out, "#[Rank: rank %u ]\n", p->rank);
}

/* Writes the requests that failed, as if each had taken as long as the timeout or the longest answer, whichever is
 * longer. */
static int write_failed(FILE *out, const struct plan *plan, const char *name, double from_s, double to_s,
						const struct histogram *h) {
	struct histogram *failed = calloc(1, sizeof *failed);
	char tag[HLOG_TAG_MAX];
	if (!failed) return -1;
	histogram_record_at(failed, histogram_index(histogram_beyond(h, plan->timeout_ns)), h->censored);
	snprintf(tag, sizeof tag, FILES_FAILED "%s", name);
	int result = hlog_write(out, tag, from_s, to_s - from_s, failed);
	free(failed);
	return result;
}

int files_hlog(FILE *out, const struct plan *plan, double from_s, double to_s, const struct measures *m) {
	for (int i = 0; i < DURATIONS; i++) {
		const struct histogram *h = &m->duration[i];
		if (h->samples && hlog_write(out, duration_name[i], from_s, to_s - from_s, h) == -1) return -1;
		if (h->censored && write_failed(out, plan, duration_name[i], from_s, to_s, h) == -1) return -1;
	}
	return 0;
}

/* The [Run:] line comes last: a log that has it is complete. */
void files_hlog_end(FILE *out, const struct plan *plan, const struct run *r) {
	const struct measures *m = &r->total;
	char why[VERDICT_TEXT];
	const char *verdict = verdict_name[verdict_of(plan, r, why)];
	fprintf(out, "#[Verdict: %s%s%s]\n", verdict, *why ? ": " : "", why);
	fputs("#[Failed:", out);
	for (int i = 0; i < FAILURES; i++) fprintf(out, " %s %llu", failure_name[i], u(m->failure[i]));
	fputs(" ]\n", out);
	fprintf(out, "#[Run: elapsed_s %.6f after_s %.6f user_s %.6f system_s %.6f waiting_s %.6f", r->elapsed_s,
			r->after_s, r->user_s, r->system_s, (double)m->spun_ns / 1e9);
	for (int i = 0; i < COUNTS; i++) fprintf(out, " %s %llu", count_name[i], u(m->count[i]));
	fputs(" ]\n", out);
}
