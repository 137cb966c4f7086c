/* view_openmetrics.c - see view.h: for Prometheus and other readers of OpenMetrics (openmetrics.io, version 1.0). The
 * values of workers have a label "worker"; times and statuses are those of all together. */
#include <inttypes.h>

#include "gatling/status/upstream_counts.h"
#include "gatling/status/view.h"

static void put_head(FILE *out, const char *family, const char *type, const char *unit, const char *help) {
	fprintf(out, "# TYPE gatling_%s %s\n", family, type);
	if (unit) fprintf(out, "# UNIT gatling_%s %s\n", family, unit);
	fprintf(out, "# HELP gatling_%s %s\n", family, help);
}

static void put_family(FILE *out, const struct value_row *row) {
	put_head(out, row->family, row->grows ? "counter" : "gauge", row->unit, row->help);
}

/* Writes a sample. worker: its number, or -1 for none. */
static void put_sample(FILE *out, const struct value_row *row, int worker, uint64_t number) {
	fprintf(out, "gatling_%s%s", row->family, row->grows ? "_total" : "");
	if (worker != -1 || row->label) putc('{', out);
	if (worker != -1) fprintf(out, "worker=\"%d\"%s", worker, row->label ? "," : "");
	if (row->label) fprintf(out, "%s=\"%s\"", row->label, row->which);
	fputs(worker != -1 || row->label ? "} " : " ", out);
	value_print(out, row, number);
	putc('\n', out);
}

static void put_upstreams(FILE *out) {
	const struct upstream_counts *u;
	for (unsigned value = 0; value < UPSTREAM_VALUES && upstream_counts_at(0); value++) {
		const struct value_row *row = &upstream_value_row[value];
		put_family(out, row);
		for (unsigned i = 0; (u = upstream_counts_at(i)); i++) {
			fprintf(out, "gatling_%s%s{upstream=\"%s\"} ", row->family, row->grows ? "_total" : "", u->address);
			value_print(out, row, upstream_counts_value(u, (enum upstream_value)value));
			putc('\n', out);
		}
	}
}

static void put_answers(FILE *out, const struct counters *c) {
	put_head(out, "answers", "counter", NULL, "Answers by status.");
	for (unsigned i = 0; i < STATUSES; i++)
		if (counters_answers(c, i))
			fprintf(out, "gatling_answers_total{status=\"%u\"} %" PRIu64 "\n", i + STATUS_FIRST,
					counters_answers(c, i));
}

/* Writes a histogram. An interval in which a limit lies is counted above it, so that no time is reported as shorter
 * than it was. */
static void put_times(FILE *out, const char *family, const char *help, const uint64_t *times, uint64_t sum_ns) {
	static const double limit[] = {1e-5,  2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01,
								   0.025, 0.05,   0.1,  0.25, 0.5,    1,    2.5,  5,      10,   30};
	uint64_t sum = 0;
	unsigned n = 0;
	put_head(out, family, "histogram", "seconds", help);
	for (unsigned i = 0; i < sizeof limit / sizeof *limit; i++) {
		for (; (double)times_limit(n) <= limit[i] * 1e9; n++) sum += times[n];
		fprintf(out, "gatling_%s_bucket{le=\"%g\"} %" PRIu64 "\n", family, limit[i], sum);
	}
	for (; n < TIMES; n++) sum += times[n];
	fprintf(out, "gatling_%s_bucket{le=\"+Inf\"} %" PRIu64 "\ngatling_%s_sum %.6f\ngatling_%s_count %" PRIu64 "\n",
			family, sum, family, (double)sum_ns / 1e9, family, sum);
}

/* Writes until when a certificate is valid, for alerts. */
static void put_expiry(void *owner, const struct certified *c) {
	fprintf(owner, "gatling_certificate_expiry_seconds{name=\"%s\"} %" PRId64 "\n", c->name, c->until_s);
}

void view_openmetrics(FILE *out, const struct status_view *v) {
	const struct counters *all = &history_second(v->history, 0)->sum;
	for (unsigned first = 0, end; first < VALUES; first = end) {
		put_family(out, &value_row[first]);
		for (end = first + 1; end < VALUES && !value_begins_family(end);) end++;
		for (unsigned i = first; i < end && first >= WORKER_VALUES; i++)
			put_sample(out, &value_row[i], -1, all->value[i]);
		for (unsigned w = 0; w < v->workers && first < WORKER_VALUES; w++)
			for (unsigned i = first; i < end; i++)
				put_sample(out, &value_row[i], (int)w, counters_value(v->worker[w], (enum value)i));
	}
	put_answers(out, all);
	put_times(out, "first_byte_seconds", "Time from a request to the first byte of its answer; estimated of a part.",
			  all->first_byte, all->first_byte_ns);
	put_times(out, "duration_seconds", "Time from a request until its answer was given to the kernel, in the same way.",
			  all->duration, all->duration_ns);
	put_upstreams(out);
	put_head(out, "certificate_expiry_seconds", "gauge", "seconds",
			 "Time since the epoch until which a certificate got by ACME is valid; 0: there is none yet.");
	certified_each(v->certified, put_expiry, out);
	put_head(out, "uptime_seconds", "gauge", "seconds", "Time since the start.");
	fprintf(out, "gatling_uptime_seconds %" PRId64 "\n# EOF\n", v->up_s);
}
