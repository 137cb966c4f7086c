/* run_log.c - see run_log.h. */
#include "bench/httpbench/run_log.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/files.h"
#include "bench/usage.h"

int run_log_complain(const char *path, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "httpbench: %s: ", path);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
	return -1;
}

/* --- settings and totals --- */

/* Returns the text behind a name in a comment, or NULL. */
static const char *after(const char *text, const char *name) {
	char key[64];
	snprintf(key, sizeof key, " %s ", name);
	const char *found = strstr(text, key);
	return found ? found + strlen(key) : NULL;
}

uint64_t run_log_number(const char *text, const char *name) {
	const char *number = after(text, name);
	return number ? strtoull(number, NULL, 10) : 0;
}

double run_log_real(const char *text, const char *name) {
	const char *number = after(text, name);
	double value = number ? strtod(number, NULL) : 0;
	return isfinite(value) && value > 0 ? value : 0;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static void take_comment(struct run_log *l, const char *text) {
	struct measures *m = &l->run.total;
	if (begins(text, "[StartTime: ")) {
		l->run.started_s = strtod(text + strlen("[StartTime: "), NULL);
	} else if (begins(text, "[Plan:") && !l->plan) {
		l->plan = strdup(text);
	} else if (begins(text, "[Verdict: ") && !l->verdict) {
		l->verdict = strdup(text + strlen("[Verdict: "));
		if (l->verdict) l->verdict[strcspn(l->verdict, "]")] = '\0';
	} else if (begins(text, "[Rank:")) {
		l->rank = (unsigned)run_log_number(text, "rank");
	} else if (begins(text, "[Run:")) {
		l->run.elapsed_s = run_log_real(text, "elapsed_s");
		l->run.after_s = run_log_real(text, "after_s");
		l->run.user_s = run_log_real(text, "user_s");
		l->run.system_s = run_log_real(text, "system_s");
		for (int i = 0; i < COUNTS; i++) m->count[i] = run_log_number(text, count_name[i]);
		m->spun_ns = (uint64_t)(run_log_real(text, "waiting_s") * 1e9);
	} else if (begins(text, "[Failed:")) {
		for (int i = 0; i < FAILURES; i++) m->failure[i] = run_log_number(text, failure_name[i]);
	}
}

/* Estimates the totals of a log without its last lines from the histograms, and prints why. Returns -1. */
static int estimate(struct run_log *l, const char *why) {
	l->run.elapsed_s = l->end_s;
	uint64_t *count = l->run.total.count;
	count[COUNT_ANSWERED] = count[COUNT_SENT] = l->run.total.duration[DURATION_WHOLE].samples;
	return run_log_complain(l->path, "%s", why);
}

/* --- intervals --- */

struct reading {
	FILE *in;
	char *text;
	struct histogram *interval; /* empty between two intervals */
	run_log_interval *take;
	void *context;
};

static void take_interval(struct run_log *l, const struct reading *r, const struct hlog_line *line) {
	const bool failed = begins(line->tag, FILES_FAILED);
	const char *name = line->tag + (failed ? strlen(FILES_FAILED) : 0);
	l->end_s = line->start_s + line->length_s;
	for (int i = 0; i < DURATIONS; i++) {
		if (strcmp(name, duration_name[i]) != 0) continue;
		if (failed) l->run.total.duration[i].censored += r->interval->samples;
		else histogram_add(&l->run.total.duration[i], r->interval);
		if (i == DURATION_WHOLE && !failed) run_note_trend(&l->run, r->interval);
		r->take(r->context, l, line, (enum duration)i, failed, r->interval);
	}
	histogram_reset(r->interval);
}

static int read_lines(struct run_log *l, const struct reading *r) {
	struct hlog_line line;
	while (true) {
		switch (hlog_read(r->in, &line, r->interval, r->text)) {
		case HLOG_END:
			if (ferror(r->in)) return estimate(l, strerror(errno));
			return l->run.elapsed_s > 0 ? 0 : estimate(l, "it is cut short: its last lines are missing");
		case HLOG_BROKEN: return estimate(l, r->text);
		case HLOG_COMMENT: take_comment(l, r->text); break;
		case HLOG_INTERVAL: take_interval(l, r, &line);
		}
	}
}

int run_log_read(struct run_log *l, const char *path, run_log_interval *take, void *context) {
	struct reading r = {.in = fopen(path, "r"), .take = take, .context = context};
	memset(l, 0, sizeof *l);
	l->path = path;
	if (!r.in) return run_log_complain(path, "%s", strerror(errno));
	r.text = malloc(HLOG_LINE_MAX);
	r.interval = calloc(1, sizeof *r.interval);
	if (!r.text || !r.interval) usage_refuse("no memory for the logs");
	int result = read_lines(l, &r);
	free(r.text);
	free(r.interval);
	fclose(r.in);
	return result;
}

void run_log_free(struct run_log *l) {
	free(l->plan);
	free(l->verdict);
	l->plan = l->verdict = NULL;
}
