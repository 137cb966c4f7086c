/* merge.c - see merge.h. Histograms add up exactly; the rate of all together comes from the intervals of the logs. */
#include "bench/httpbench/merge.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/files.h"
#include "bench/httpbench/hlog.h"
#include "bench/httpbench/rank.h"
#include "bench/httpbench/report.h"
#include "bench/usage.h"

/* Answers in a span of time; seconds since the epoch. */
struct interval {
	double from_s, to_s;
	uint64_t answered;
};

struct log {
	const char *path;
	FILE *in;
	double end_s; /* of the last interval */
	char *plan;   /* must be the same for all; NULL: unknown */
	unsigned rank;
	struct run run;
};

struct merge {
	struct run *sum;
	char *plan;              /* of the first log */
	const char *plan_path;   /* the path of that log */
	bool seen[RANK_MAX];     /* ranks */
	double from_s, to_s;     /* in which all ran */
	double slowest, fastest; /* answers a second, of a log */
	struct interval *interval;
	size_t intervals, room;
	/* for reading */
	char *text;
	struct histogram *spare; /* empty in between */
};

__attribute__((format(printf, 2, 3))) static int complain(const char *path, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "httpbench: %s: ", path);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
	return -1;
}

/* --- reading a log --- */

/* Returns the text after a name in a comment, or NULL. */
static const char *after(const char *text, const char *name) {
	char key[64];
	snprintf(key, sizeof key, " %s ", name);
	const char *found = strstr(text, key);
	return found ? found + strlen(key) : NULL;
}

static uint64_t number_after(const char *text, const char *name) {
	const char *number = after(text, name);
	return number ? strtoull(number, NULL, 10) : 0;
}

static double real_after(const char *text, const char *name) {
	const char *number = after(text, name);
	double value = number ? strtod(number, NULL) : 0;
	return isfinite(value) && value > 0 ? value : 0;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static void take_comment(struct log *l, const char *text) {
	struct measures *m = &l->run.total;
	if (begins(text, "[StartTime: ")) {
		l->run.started_s = strtod(text + strlen("[StartTime: "), NULL);
	} else if (begins(text, "[Plan:") && !l->plan) {
		l->plan = strdup(text);
	} else if (begins(text, "[Rank:")) {
		l->rank = (unsigned)number_after(text, "rank");
	} else if (begins(text, "[Run:")) {
		l->run.elapsed_s = real_after(text, "elapsed_s");
		l->run.user_s = real_after(text, "user_s");
		l->run.system_s = real_after(text, "system_s");
		for (int i = 0; i < COUNTS; i++) m->count[i] = number_after(text, count_name[i]);
		m->spun_ns = (uint64_t)(real_after(text, "waiting_s") * 1e9);
	} else if (begins(text, "[Failed:")) {
		for (int i = 0; i < FAILURES; i++) m->failure[i] = number_after(text, failure_name[i]);
	}
}

static void remember(struct merge *m, const struct interval *i) {
	if (m->intervals == m->room) {
		m->room = m->room ? 2 * m->room : 1024;
		m->interval = realloc(m->interval, m->room * sizeof *m->interval);
		if (!m->interval) usage_refuse("no memory for the logs");
	}
	m->interval[m->intervals++] = *i;
}

static void take_interval(struct merge *m, struct log *l, const struct hlog_line *line) {
	struct measures *sum = &l->run.total;
	double from_s = l->run.started_s + line->start_s;
	bool failed = begins(line->tag, FILES_FAILED);
	const char *name = line->tag + (failed ? strlen(FILES_FAILED) : 0);
	for (int i = 0; i < DURATIONS; i++) {
		if (strcmp(name, duration_name[i]) != 0) continue;
		if (failed) sum->duration[i].censored += m->spare->samples;
		else histogram_add(&sum->duration[i], m->spare);
	}
	if (strcmp(line->tag, duration_name[DURATION_WHOLE]) == 0)
		remember(m, &(struct interval){from_s, from_s + line->length_s, m->spare->samples});
	l->end_s = line->start_s + line->length_s;
	histogram_reset(m->spare);
}

/* Takes the totals of a log without its last lines from the histograms. */
static int estimate(struct log *l, const char *why) {
	l->run.elapsed_s = l->end_s;
	uint64_t *count = l->run.total.count;
	count[COUNT_ANSWERED] = count[COUNT_SENT] = l->run.total.duration[DURATION_WHOLE].samples;
	return complain(l->path, "%s", why);
}

static int read_log(struct merge *m, struct log *l) {
	struct hlog_line line;
	while (true) {
		switch (hlog_read(l->in, &line, m->spare, m->text)) {
		case HLOG_END: return l->run.elapsed_s > 0 ? 0 : estimate(l, "it is cut short: its last lines are missing");
		case HLOG_BROKEN: return estimate(l, m->text);
		case HLOG_COMMENT: take_comment(l, m->text); break;
		case HLOG_INTERVAL: take_interval(m, l, &line);
		}
	}
}

/* --- adding up --- */

/* Whether the log belongs to those before it. */
static bool belongs(struct merge *m, struct log *l) {
	if (!l->plan) return true; /* another program made the log */
	if (!m->plan) {
		m->plan = l->plan;
		m->plan_path = l->path;
		l->plan = NULL;
	} else if (strcmp(l->plan, m->plan) != 0) {
		complain(l->path, "left out, made with other options than %s:\n  %s\n  %s", m->plan_path, l->plan, m->plan);
		return false;
	}
	if (number_after(m->plan, "ranks") == 1 || l->rank >= RANK_MAX) return true;
	if (m->seen[l->rank]) complain(l->path, "left out, rank %u is there already", l->rank);
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
	if (first || rate < m->slowest) m->slowest = rate;
	if (first || rate > m->fastest) m->fastest = rate;
	if (first || r->started_s < sum->started_s) sum->started_s = r->started_s;
	sum->elapsed_s = (first || end_s > sum_end_s ? end_s : sum_end_s) - sum->started_s;
	sum->user_s += r->user_s;
	sum->system_s += r->system_s;
	measures_add(&sum->total, &r->total);
}

static void print_log(const struct log *l, int64_t timeout_ns) {
	char text[REPORT_TEXT];
	const struct measures *m = &l->run.total;
	printf("%s: answered %llu, %.0f a second, 99%% %s, failed %llu\n", l->path,
		   (unsigned long long)m->count[COUNT_ANSWERED], run_rate(&l->run),
		   report_duration(text, (double)histogram_percentile(&m->duration[DURATION_WHOLE], 99), timeout_ns),
		   (unsigned long long)measures_failed(m));
}

/* Returns 0, or -1 after printing an error. */
static int merge_log(struct merge *m, struct log *l, int64_t *timeout_ns) {
	l->in = fopen(l->path, "r");
	if (!l->in) return complain(l->path, "%s", strerror(errno));
	size_t intervals = m->intervals;
	int result = read_log(m, l);
	fclose(l->in);
	if (l->run.elapsed_s > 0 && belongs(m, l)) {
		if (m->plan) *timeout_ns = (int64_t)(real_after(m->plan, "timeout_s") * 1e9);
		add_run(m, &l->run);
		print_log(l, *timeout_ns);
	} else {
		m->intervals = intervals;
		result = -1;
	}
	free(l->plan);
	return result;
}

static int miss_ranks(const struct merge *m) {
	uint64_t ranks = m->plan ? number_after(m->plan, "ranks") : 0;
	unsigned missing = 0, first = 0;
	for (unsigned i = 0; ranks > 1 && i < ranks && i < RANK_MAX; i++)
		if (!m->seen[i] && !missing++) first = i;
	if (!missing) return 0;
	fprintf(stderr, "httpbench: of %llu ranks %u are missing, the first is %u\n", (unsigned long long)ranks, missing,
			first);
	return -1;
}

static void print_together(const struct merge *m) {
	double together_s = m->to_s > m->from_s ? m->to_s - m->from_s : 0, answered = 0;
	for (size_t i = 0; i < m->intervals; i++) {
		const struct interval *at = &m->interval[i];
		double from_s = at->from_s > m->from_s ? at->from_s : m->from_s, to_s = at->to_s < m->to_s ? at->to_s : m->to_s;
		if (to_s > from_s) answered += (double)at->answered * (to_s - from_s) / (at->to_s - at->from_s);
	}
	printf("together   for %.2f s of %.2f s", together_s, m->sum->elapsed_s);
	if (together_s > 0) printf(", %.0f a second", answered / together_s);
	printf("\neach       from %.0f to %.0f a second\n\n", m->slowest, m->fastest);
}

int merge_logs(char *const *path, unsigned paths, struct run *sum, int64_t *timeout_ns) {
	struct merge *m = calloc(1, sizeof *m);
	struct log *l = calloc(1, sizeof *l);
	if (!m || !l || !(m->text = malloc(HLOG_LINE_MAX)) || !(m->spare = calloc(1, sizeof *m->spare)))
		usage_refuse("no memory for the logs");
	int result = 0;
	m->sum = sum;
	for (unsigned i = 0; i < paths; i++) {
		memset(l, 0, sizeof *l);
		l->path = path[i];
		if (merge_log(m, l, timeout_ns) == -1) result = -1;
	}
	if (miss_ranks(m) == -1) result = -1;
	if (sum->elapsed_s > 0) print_together(m);
	free(l);
	free(m->plan);
	free(m->interval);
	free(m->text);
	free(m->spare);
	free(m);
	return result;
}
