/* merge.c - see merge.h. Histograms add up exactly; the total rate is calculated from the intervals of the logs. */
#include "bench/httpbench/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/rank.h"
#include "bench/httpbench/report.h"
#include "bench/httpbench/run_log.h"
#include "bench/httpbench/verdict.h"
#include "bench/usage.h"

/* Answers in a period; times are in seconds since the epoch. */
struct interval {
	double from_s, to_s;
	uint64_t answered;
};

struct merge {
	FILE *out; /* for the report */
	struct run *sum;
	char *plan;              /* the settings of the first log that has them */
	const char *plan_path;   /* the path of that log */
	bool seen[RANK_MAX];     /* by rank */
	double from_s, to_s;     /* when all ran */
	double longest_s;        /* the time of the longest */
	double slowest, fastest; /* answers a second of a log */
	struct interval *interval;
	size_t intervals, room;
};

static void remember(struct merge *m, const struct interval *i) {
	if (m->intervals == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->interval = realloc(m->interval, m->room * sizeof *m->interval);
		if (!m->interval) usage_refuse("no memory for the logs");
	}
	m->interval[m->intervals++] = *i;
}

static void take_interval(void *merge, const struct run_log *l, const struct hlog_line *line, enum duration duration,
						  bool failed, const struct histogram *h) {
	double from_s = l->run.started_s + line->start_s;
	if (duration == DURATION_WHOLE && !failed)
		remember(merge, &(struct interval){from_s, from_s + line->length_s, h->samples});
}

/* --- adding up --- */

/* Returns whether the log belongs to the previous ones. */
static bool belongs(struct merge *m, struct run_log *l) {
	if (!l->plan) return true; /* it was written by another program */
	if (!m->plan) {
		m->plan = l->plan;
		m->plan_path = l->path;
		l->plan = NULL;
	} else if (strcmp(l->plan, m->plan) != 0) {
		run_log_complain(l->path, "left out, made with other options than %s:\n  %s\n  %s", m->plan_path, l->plan,
						 m->plan);
		return false;
	}
	if (run_log_number(m->plan, "ranks") == 1 || l->rank >= RANK_MAX) return true;
	if (m->seen[l->rank]) run_log_complain(l->path, "left out, rank %u is there already", l->rank);
	else return m->seen[l->rank] = true;
	return false;
}

static void add_run(struct merge *m, const struct run *r) {
	struct run *sum = m->sum;
	bool first = sum->elapsed_s == 0;
	double end_s = r->started_s + r->elapsed_s, sum_end_s = sum->started_s + sum->elapsed_s;
	double rate = run_rate(r);
	if (first || r->started_s > m->from_s) m->from_s = r->started_s;
	if (first || end_s < m->to_s) m->to_s = end_s;
	if (first || r->elapsed_s > m->longest_s) m->longest_s = r->elapsed_s;
	if (first || rate < m->slowest) m->slowest = rate;
	if (first || rate > m->fastest) m->fastest = rate;
	if (first || r->started_s < sum->started_s) sum->started_s = r->started_s;
	sum->elapsed_s = (first || end_s > sum_end_s ? end_s : sum_end_s) - sum->started_s;
	sum->user_s += r->user_s;
	sum->system_s += r->system_s;
	measures_add(&sum->total, &r->total);
}

static void print_log(FILE *out, const struct run_log *l, int64_t timeout_ns) {
	char rate[REPORT_TEXT], text[REPORT_TEXT];
	const struct measures *m = &l->run.total;
	const struct histogram *whole = &m->duration[DURATION_WHOLE];
	fprintf(out, "%s: answered %llu, %s a second, 99%% %s, failed %llu\n", l->path,
			(unsigned long long)m->count[COUNT_ANSWERED], report_rate(rate, run_rate(&l->run)),
			report_duration(text, (double)histogram_percentile(whole, 99), report_beyond(m, whole, timeout_ns)),
			(unsigned long long)measures_failed(m));
	if (l->verdict && strcmp(l->verdict, verdict_name[VERDICT_PASS]) != 0) fprintf(out, "  verdict  %s\n", l->verdict);
}

/* Reads a log and adds it. Returns 0, or -1 after a message on stderr. */
static int merge_log(struct merge *m, struct run_log *l, const char *path, int64_t *timeout_ns) {
	size_t intervals = m->intervals;
	int result = run_log_read(l, path, take_interval, m);
	const double end_s = l->run.started_s + l->run.elapsed_s; /* the last interval ends there */
	for (size_t i = intervals; i < m->intervals; i++)
		if (m->interval[i].to_s > end_s) m->interval[i].to_s = end_s;
	if (l->run.elapsed_s > 0 && belongs(m, l)) {
		if (m->plan) *timeout_ns = (int64_t)(run_log_real(m->plan, "timeout_s") * 1e9);
		add_run(m, &l->run);
		print_log(m->out, l, *timeout_ns);
	} else {
		m->intervals = intervals;
		result = -1;
	}
	run_log_free(l);
	return result;
}

/* Complains if the logs are of different times for the most part: their machines started at different moments, or their
 * clocks differ. Returns 0, or -1. */
static int miss_overlap(const struct merge *m, double together_s) {
	if (m->longest_s < MERGE_SHORTEST_S || 100 * together_s >= MERGE_TOGETHER_PERCENT * m->longest_s) return 0;
	fprintf(stderr,
			"httpbench: the logs have %.3g s of %.3g s in common: --start-at makes runs begin together, if their "
			"clocks agree\n",
			together_s, m->longest_s);
	return -1;
}

static int miss_ranks(const struct merge *m) {
	uint64_t ranks = m->plan ? run_log_number(m->plan, "ranks") : 0;
	unsigned missing = 0, first = 0;
	for (unsigned i = 0; ranks > 1 && i < ranks && i < RANK_MAX; i++)
		if (!m->seen[i] && !missing++) first = i;
	if (!missing) return 0;
	fprintf(stderr, "httpbench: of %llu ranks %u are missing, the first is %u\n", (unsigned long long)ranks, missing,
			first);
	return -1;
}

static double together(const struct merge *m) { return m->to_s > m->from_s ? m->to_s - m->from_s : 0; }

/* Prints and returns the answers a second while all ran, or 0 if they never did. */
static double print_together(const struct merge *m) {
	double together_s = together(m), answered = 0;
	for (size_t i = 0; i < m->intervals; i++) {
		const struct interval *at = &m->interval[i];
		double from_s = at->from_s > m->from_s ? at->from_s : m->from_s, to_s = at->to_s < m->to_s ? at->to_s : m->to_s;
		if (to_s > from_s) answered += (double)at->answered * (to_s - from_s) / (at->to_s - at->from_s);
	}
	fprintf(m->out, "together   for %.2f s of %.2f s", together_s, m->sum->elapsed_s);
	char least[REPORT_TEXT], most[REPORT_TEXT];
	const double per_s = together_s > 0 ? answered / together_s : 0;
	if (together_s > 0) fprintf(m->out, ", %s a second", report_rate(least, per_s));
	fprintf(m->out, "\neach       from %s to %s a second\n\n", report_rate(least, m->slowest),
			report_rate(most, m->fastest));
	return per_s;
}

int merge_logs(FILE *out, char *const *path, unsigned paths, struct run *sum, int64_t *timeout_ns,
			   double *together_per_s) {
	struct merge *m = calloc(1, sizeof *m);
	struct run_log *l = calloc(1, sizeof *l);
	if (!m || !l) usage_refuse("no memory for the logs");
	int result = 0;
	m->out = out;
	m->sum = sum;
	for (unsigned i = 0; i < paths; i++)
		if (merge_log(m, l, path[i], timeout_ns) == -1) result = -1;
	if (miss_ranks(m) == -1 || miss_overlap(m, together(m)) == -1) result = -1;
	*together_per_s = sum->elapsed_s > 0 ? print_together(m) : 0;
	free(l);
	free(m->plan);
	free(m->interval);
	free(m);
	return result;
}
