/* report.c - see report.h. */
#include "bench/httpbench/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/verdict.h"
#include "io/io.h"

enum {
	REPORT_QUEUED_PERCENT = 5, /* of the threads' time: less is not reported */
	COLUMNS = 80,
	INDENT = 11 /* columns for the name of a line */
};

const double report_percentile[REPORT_PERCENTILES] = {50, 75, 90, 99, 99.9, 99.99, 100};
const double report_brief[REPORT_BRIEF] = {50, 99, 99.9, 100};

static const struct unit {
	double size;
	const char *name;
} duration_units[] = {{60e9, "m"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}},
  byte_units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};

/* Formats a value with three significant digits in the unit that fits. */
static const char *scaled(char *text, double value, const struct unit *unit, int units) {
	int i = 0;
	while (i < units - 1 && value < unit[i].size) i++;
	double n = value / unit[i].size;
	int digits = n >= 99.95 || unit[i].size == 1 ? 0 : n >= 9.995 ? 1 : 2;
	snprintf(text, REPORT_TEXT, "%.*f%s", digits, n, unit[i].name);
	return text;
}

const char *report_duration(char *text, double ns, int64_t timeout_ns) {
	if (ns >= 0) return scaled(text, ns, duration_units, sizeof duration_units / sizeof *duration_units);
	char limit[REPORT_TEXT];
	if (timeout_ns == REPORT_FAILED) snprintf(text, REPORT_TEXT, "failed");
	else
		snprintf(text, REPORT_TEXT, ">%.14s",
				 scaled(limit, (double)timeout_ns, duration_units, sizeof duration_units / sizeof *duration_units));
	return text;
}

const char *report_rate(char *text, double per_second) {
	snprintf(text, REPORT_TEXT, per_second < 99.95 ? "%.3g" : "%.0f", per_second);
	return text;
}

int64_t report_beyond(const struct measures *m, const struct histogram *h, int64_t timeout_ns) {
	if (!m->failure[FAILURE_TIMEOUT] && !m->failure[FAILURE_UNSENT]) return REPORT_FAILED;
	return histogram_beyond(h, timeout_ns);
}

static void print_duration(FILE *out, const char *name, const struct histogram *h, int64_t timeout_ns) {
	char text[REPORT_TEXT];
	fprintf(out, "%-10s", name);
	fprintf(out, " %6s", h->samples ? report_duration(text, histogram_mean(h), timeout_ns) : "-");
	fprintf(out, " %6s", h->samples ? report_duration(text, histogram_deviation(h), timeout_ns) : "-");
	for (int i = 0; i < REPORT_PERCENTILES; i++)
		fprintf(out, " %6s", report_duration(text, (double)histogram_percentile(h, report_percentile[i]), timeout_ns));
}

void report_durations(FILE *out, const char *line_end, const struct plan *plan, const struct measures *m) {
	static const char *const name[DURATIONS] = {"connect", "handshake", "upgrade", "first byte", "whole", "lateness"};
	fprintf(out, "%-10s %6s %6s", "", "mean", "stddev");
	for (int i = 0; i < REPORT_PERCENTILES; i++) fprintf(out, " %5g%%", report_percentile[i]);
	fputs(line_end, out);
	for (int i = 0; i < DURATIONS; i++) {
		const struct histogram *h = &m->duration[i];
		if (!h->samples && !h->censored) continue;
		print_duration(out, name[i], h, report_beyond(m, h, plan->timeout_ns));
		fputs(line_end, out);
	}
}

void report_failures(FILE *out, const struct measures *m) {
	char statuses[MEASURES_TEXT];
	measures_statuses(m, statuses, sizeof statuses);
	for (int i = 0; i < FAILURES; i++) {
		if (!m->failure[i]) continue;
		fprintf(out, " %s %llu", failure_name[i], (unsigned long long)m->failure[i]);
		if (i == FAILURE_STATUS && *statuses) fprintf(out, " (%s)", statuses);
	}
}

void report_wrapped(FILE *out, const char *name, const char *format, ...) {
	char *text = NULL, *at;
	va_list arguments;
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) == -1) text = NULL;
	va_end(arguments);
	fputs(name, out);
	size_t used = strlen(name);
	for (char *word = text ? strtok_r(text, " ", &at) : NULL; word; word = strtok_r(NULL, " ", &at)) {
		const size_t length = strlen(word);
		if (used + 1 + length > COLUMNS && used > INDENT) used = (size_t)fprintf(out, "\n%*s", INDENT - 1, "") - 1;
		used += (size_t)fprintf(out, "%*s%s", used < INDENT ? INDENT - (int)used : 1, "", word);
	}
	fputs("\n", out);
	free(text);
}

static void print_failures(FILE *out, const struct measures *m) {
	char *text;
	size_t length;
	FILE *kinds = open_memstream(&text, &length);
	if (!kinds) return;
	report_failures(kinds, m);
	if (fclose(kinds) == 0) report_wrapped(out, "failed", "%llu:%s", (unsigned long long)measures_failed(m), text);
	free(text);
}

static void print_own_cost(FILE *out, const struct plan *plan, const struct run *r) {
	double own_s = r->user_s + r->system_s, spun_s = (double)r->total.spun_ns / 1e9;
	if (!r->total.count[COUNT_ANSWERED]) {
		fprintf(out, "own cost   %.2f s of processor time\n", own_s);
		return;
	}
	double us = 1e6 / (double)r->total.count[COUNT_ANSWERED];
	fprintf(out, "own cost   %.2f us of processor time a %s, %.2f of it waiting\n", own_s * us,
			plan->websocket ? "message" : "request", spun_s * us);
}

/* Prints how long the clients' threads waited for a processor, if it is much: the durations include this time. */
static void print_queued(FILE *out, const struct plan *plan, const struct run *r) {
	const double percent = run_queued_percent(plan, r);
	if (percent <= REPORT_QUEUED_PERCENT) return;
	fprintf(out, "processor  waited for it for %.0f %% of the time: %sthe server or others took it\n", percent,
			plan->clients > io_processors() ? "its threads, " : "");
}

static unsigned long long due(const struct measures *m) {
	return m->count[COUNT_ANSWERED] + measures_failed(m) + m->count[COUNT_DROPPED];
}

void report_run(FILE *out, const struct plan *plan, const struct run *r) {
	const struct measures *m = &r->total;
	char text[REPORT_TEXT];
	fprintf(out, "answered   %llu in %.2f s, %s a second%s\n", (unsigned long long)m->count[COUNT_ANSWERED],
			r->elapsed_s, report_rate(text, run_rate(r)), r->interrupted ? "; interrupted" : "");
	if (m->count[COUNT_LATE])
		fprintf(out, "late       %llu of them, up to %s after the end of the load\n",
				(unsigned long long)m->count[COUNT_LATE], report_duration(text, r->after_s * 1e9, REPORT_FAILED));
	if (plan->rate > 0) fprintf(out, "due        %llu, %.10g a second\n", due(m), plan->rate);
	if (plan->ranks > 1) fprintf(out, "rank       %u of %u\n", plan->rank, plan->ranks);
	if (measures_failed(m)) print_failures(out, m);
	if (m->count[COUNT_DROPPED])
		fprintf(out, "dropped    %llu that were under way or waited\n", (unsigned long long)m->count[COUNT_DROPPED]);
	if (*m->tls_failed) report_wrapped(out, "tls", "failed: %s", m->tls_failed);
	if (*m->websocket_failed) report_wrapped(out, "websocket", "failed: %s", m->websocket_failed);
	if (*m->quic_failed) report_wrapped(out, "http3", "failed: %s", m->quic_failed);
	fprintf(out, "received   %s", scaled(text, (double)m->count[COUNT_BYTES], byte_units, 5));
	fprintf(out, ", %s a second\n", scaled(text, (double)m->count[COUNT_BYTES] / r->elapsed_s, byte_units, 5));
	fprintf(out, "opened     %llu connections%s\n", (unsigned long long)m->count[COUNT_CONNECTED],
			plan->http2       ? ", of HTTP/2"
			: plan->http3     ? ", of HTTP/3"
			: plan->websocket ? ", of WebSocket"
							  : "");
	if (*m->tls)
		fprintf(out, "tls        %s, %llu sessions resumed\n", m->tls, (unsigned long long)m->count[COUNT_RESUMED]);
	print_own_cost(out, plan, r);
	print_queued(out, plan, r);
	if (plan->clients) { /* not for merged runs */
		char why[VERDICT_TEXT];
		const enum verdict verdict = verdict_of(plan, r, why);
		report_wrapped(out, "verdict", "%s%s%s", verdict_name[verdict], *why ? ": " : "", why);
		if (*r->others && verdict != VERDICT_NOISY) report_wrapped(out, "processor", "%s", r->others);
	}
	fputs("\n", out);
	report_durations(out, "\n", plan, m);
}

void report_line(FILE *out, double from_s, double to_s, const struct measures *m) {
	const struct histogram *h = &m->duration[DURATION_WHOLE];
	char rate[REPORT_TEXT], half[REPORT_TEXT], most[REPORT_TEXT];
	fprintf(out, "%6.0f s %9s a second, 50%% %s, 99%% %s, %llu failed", to_s,
			report_rate(rate, (double)m->count[COUNT_ANSWERED] / (to_s - from_s)),
			report_duration(half, (double)histogram_percentile(h, 50), REPORT_FAILED),
			report_duration(most, (double)histogram_percentile(h, 99), REPORT_FAILED),
			(unsigned long long)measures_failed(m));
}
