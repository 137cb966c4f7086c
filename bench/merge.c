/* merge.c - see merge.h. Histograms add up exactly; rates are compared over the time in which all runs were under way.
 */
#include "bench/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/hlog.h"
#include "bench/report.h"

struct log {
	const char *path;
	FILE *in;
	double end_s; /* of the last interval */
	int64_t timeout_ns;
	struct run run;
};

static int complain(const struct log *l, const char *why) {
	fprintf(stderr, "httpbench: cannot read %s: %s\n", l->path, why);
	return -1;
}

static uint64_t number_after(const char *text, const char *name) {
	char key[64];
	snprintf(key, sizeof key, " %s ", name);
	const char *found = strstr(text, key);
	return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static double real_after(const char *text, const char *name) {
	char key[64];
	snprintf(key, sizeof key, " %s ", name);
	const char *found = strstr(text, key);
	return found ? strtod(found + strlen(key), NULL) : 0;
}

static void take_comment(struct log *l, const char *text) {
	struct measures *m = &l->run.total;
	if (strncmp(text, "[StartTime: ", strlen("[StartTime: ")) == 0)
		l->run.started_s = strtod(text + strlen("[StartTime: "), NULL);
	if (strncmp(text, "[Run:", strlen("[Run:")) == 0) {
		l->run.elapsed_s = real_after(text, "elapsed_s");
		l->run.user_s = real_after(text, "user_s");
		l->run.system_s = real_after(text, "system_s");
		m->sent = number_after(text, "sent");
		m->answered = number_after(text, "answered");
		m->connections = number_after(text, "connected");
		m->bytes = number_after(text, "bytes");
		m->spun_ns = (uint64_t)(real_after(text, "waiting_s") * 1e9);
		l->timeout_ns = (int64_t)(real_after(text, "timeout_s") * 1e9);
	}
	if (strncmp(text, "[Failed:", strlen("[Failed:")) == 0) {
		for (int i = 0; i < FAILURES; i++) m->failure[i] = number_after(text, failure_name[i]);
		m->duration[DURATION_WHOLE].censored = measures_failed(m);
	}
}

static struct histogram *duration_of(struct measures *m, const char *tag) {
	for (int i = 0; i < DURATIONS; i++)
		if (strcmp(tag, duration_name[i]) == 0) return &m->duration[i];
	return NULL;
}

/* Of a log without its last lines, what the histograms tell. */
static void estimate(struct log *l) {
	l->run.elapsed_s = l->end_s;
	l->run.total.answered = l->run.total.sent = l->run.total.duration[DURATION_WHOLE].samples;
}

/* Reads a log into l->run; text is of HLOG_LINE_MAX bytes, spare is empty. */
static int read_log(struct log *l, char *text, struct histogram *spare) {
	struct hlog_line line;
	while (true) {
		switch (hlog_read(l->in, &line, spare, text)) {
		case HLOG_END:
			if (l->run.elapsed_s > 0) return 0;
			estimate(l);
			return complain(l, "it is cut short: its last lines are missing");
		case HLOG_BROKEN: estimate(l); return complain(l, text);
		case HLOG_COMMENT: take_comment(l, text); break;
		case HLOG_INTERVAL: {
			struct histogram *h = duration_of(&l->run.total, line.tag);
			if (h) histogram_add(h, spare);
			histogram_reset(spare);
			l->end_s = line.start_s + line.length_s;
		}
		}
	}
}

static void print_log(const struct log *l) {
	char text[REPORT_TEXT];
	const struct measures *m = &l->run.total;
	printf("%s: answered %llu, %.0f a second, 99%% %s, failed %llu\n", l->path, (unsigned long long)m->answered,
		   (double)m->answered / l->run.elapsed_s,
		   report_duration(text, (double)histogram_percentile(&m->duration[DURATION_WHOLE], 99), l->timeout_ns),
		   (unsigned long long)measures_failed(m));
}

static void add_run(struct run *sum, const struct run *r) {
	double end_s = r->started_s + r->elapsed_s, sum_end_s = sum->started_s + sum->elapsed_s;
	bool first = sum->elapsed_s == 0;
	if (first || r->started_s < sum->started_s) sum->started_s = r->started_s;
	sum->elapsed_s = (first || end_s > sum_end_s ? end_s : sum_end_s) - sum->started_s;
	sum->user_s += r->user_s;
	sum->system_s += r->system_s;
	measures_add(&sum->total, &r->total);
}

/* The time in which all runs were under way. */
struct span {
	double from_s, to_s;
};

static void narrow(struct span *common, const struct run *r) {
	if (r->started_s > common->from_s) common->from_s = r->started_s;
	if (common->to_s == 0 || r->started_s + r->elapsed_s < common->to_s) common->to_s = r->started_s + r->elapsed_s;
}

int merge_logs(char *const *path, unsigned paths, struct run *sum, int64_t *timeout_ns) {
	struct log *l = calloc(1, sizeof *l);
	struct histogram *spare = calloc(1, sizeof *spare);
	char *text = malloc(HLOG_LINE_MAX);
	struct span common = {0};
	int result = l && spare && text ? 0 : -1;
	for (unsigned i = 0; i < paths && l && spare && text; i++) {
		memset(l, 0, sizeof *l);
		l->path = path[i];
		l->in = fopen(path[i], "r");
		if (!l->in) result = complain(l, strerror(errno));
		else if (read_log(l, text, spare) == -1) result = -1;
		if (l->in) fclose(l->in);
		if (l->run.elapsed_s <= 0) continue;
		if (l->timeout_ns > *timeout_ns) *timeout_ns = l->timeout_ns;
		narrow(&common, &l->run);
		add_run(sum, &l->run);
		print_log(l);
	}
	if (sum->elapsed_s > 0) {
		double together_s = common.to_s > common.from_s ? common.to_s - common.from_s : 0;
		printf("together   for %.2f s of %.2f s\n\n", together_s, sum->elapsed_s);
	}
	free(l);
	free(spare);
	free(text);
	return result;
}
