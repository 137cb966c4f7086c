/* httpbench.c - loads a web server and measures it from the client's side. See httpbench(1). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/httpbench/compare.h"
#include "bench/httpbench/files.h"
#include "bench/httpbench/merge.h"
#include "bench/httpbench/options.h"
#include "bench/httpbench/rank.h"
#include "bench/httpbench/report.h"
#include "bench/httpbench/staged.h"
#include "bench/httpbench/tui.h"
#include "bench/httpbench/verdict.h"
#include "bench/machine.h"
#include "bench/profile.h"
#include "bench/usage.h"
#include "io/io.h"

static int write_error; /* errno of the first write to a file that failed; 0: none has */

/* Where results go besides the report; NULL: they are not written. */
struct outputs {
	const struct plan *plan;
	FILE *json, *tsv, *hlog;
	struct tui *tui;
	struct staged *staged;
	bool line; /* a progress line on stderr */
};

static FILE *open_output(const char *option, const char *name, unsigned rank) {
	if (!name) return NULL;
	if (output_is_stdout(name)) {
		setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* for programs that read them during the run */
		return stdout;
	}
	char *path = rank_in_name(name, rank);
	FILE *f = path ? fopen(path, "w") : NULL;
	if (!f) usage_refuse("%s: cannot write '%s': %s", option, path ? path : name, strerror(errno));
	free(path);
	return f;
}

static void close_output(FILE *f, const char *path) {
	if (!f || f == stdout) return; /* usage_end() reports errors of stdout */
	bool failed = ferror(f);
	errno = write_error;
	if (fclose(f) == 0 && !failed) return;
	fprintf(stderr, "httpbench: cannot write %s: %s\n", path, strerror(errno));
	exit(1);
}

/* Keeps the reason why a file cannot be written, since a later write may succeed. */
static void note_error(FILE *f) {
	if (f && ferror(f) && !write_error) write_error = errno;
}

static void watch(void *context, double from_s, double to_s, const struct measures *m) {
	const struct outputs *o = context;
	if (o->tsv) files_tsv_line(o->tsv, from_s, to_s, m);
	if (o->hlog) (void)files_hlog(o->hlog, o->plan, from_s, to_s, m); /* close_output() reports errors */
	note_error(o->tsv);
	note_error(o->hlog);
	staged_take(o->staged, from_s, to_s, m);
	if (o->tui) tui_show(o->tui, from_s, to_s, m);
	if (!o->line) return;
	fputs("\r", stderr);
	report_line(stderr, from_s, to_s, m);
	fputs("\033[K", stderr);
}

/* Runs "httpbench merge [--json FILE] LOG...". Returns the exit status. */
static int merge(int argc, char **argv) {
	static struct run r;
	struct plan plan = {0};
	const char *json_path = NULL;
	double together_per_s;
	static const struct option options[] = {{"json", required_argument, NULL, 'j'}, {0}};
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c != 'j') usage_refuse("merge takes --json FILE and logs, not '%s'", argv[optind - 1]);
		json_path = optarg;
	}
	if (optind == argc) usage_refuse("merge needs the logs of runs");
	FILE *report = output_is_stdout(json_path) ? stderr : stdout;
	int result = merge_logs(report, argv + optind, (unsigned)(argc - optind), &r, &plan.timeout_ns, &together_per_s);
	if (r.elapsed_s > 0) {
		FILE *json = open_output("--json", json_path, 0);
		report_run(report, &plan, &r);
		if (json) files_json(json, &plan, &r, together_per_s, NULL);
		close_output(json, json_path);
	}
	return result == -1 ? 2 : measures_failed(&r.total) ? 1 : 0;
}

/* Runs "httpbench compare [--confidence PERCENT] [--fail CONDITION]... A B". Returns the exit status. */
static int compare(int argc, char **argv) {
	static const struct option options[] = {
		{"confidence", required_argument, NULL, 'c'}, {"fail", required_argument, NULL, 'f'}, {0}};
	struct compare_condition condition[COMPARE_CONDITIONS_MAX];
	unsigned conditions = 0;
	double percent = 99;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'c') {
			percent = usage_number("--confidence", optarg, 50, 99.99);
		} else if (c == 'f') {
			if (conditions == COMPARE_CONDITIONS_MAX) usage_refuse("--fail may be given up to %u times", conditions);
			if (compare_condition_parse(&condition[conditions++], optarg) == -1)
				usage_refuse("--fail takes a condition like 'p99>5%%', 'rate<5%%' or 'failed>0.1%%', not '%s'", optarg);
		} else {
			usage_refuse("compare takes --confidence, --fail and two logs, not '%s'", argv[optind - 1]);
		}
	}
	if (argc - optind != 2) usage_refuse("compare needs the logs of two runs: --hlog FILE writes one");
	return compare_logs((const char *const[]){argv[optind], argv[optind + 1]}, percent / 100, condition, conditions);
}

static int cannot_start(void) {
	fprintf(stderr, "httpbench: cannot start the clients: %s\n", strerror(errno));
	return 1;
}

/* Runs --search or --sweep. Returns the exit status. */
static int run_series(const struct options *o) {
	int result = o->search ? search_goal(&o->plan, &o->goal) : search_sweep(&o->plan);
	if (result == -1) return cannot_start();
	return result;
}

static int run_once(const struct options *o) {
	static struct run r;
	const struct plan *p = &o->plan;
	struct outputs out = {
		.plan = p,
		.json = open_output("--json", o->json_path, p->rank),
		.tsv = open_output("--tsv", o->tsv_path, p->rank),
		.hlog = open_output("--hlog", o->hlog_path, p->rank),
		.staged = staged_new(p),
		.line = !o->tui && isatty(STDERR_FILENO),
	};
	if (out.tsv) files_tsv_begin(out.tsv);
	if (out.hlog) files_hlog_begin(out.hlog, p, machine_seconds(CLOCK_REALTIME));
	if (o->tui) out.tui = tui_start(p);
	int result = run_plan(p, watch, &out, &r);
	if (out.tui) tui_end(out.tui);
	if (out.line) fputs("\r\033[K", stderr);
	if (result == -1) return cannot_start();
	FILE *const report = outputs_on_stdout(o) ? stderr : stdout;
	report_run(report, p, &r);
	staged_print(report, out.staged);
	if (out.json) files_json(out.json, p, &r, run_rate(&r), out.staged);
	staged_free(out.staged);
	note_error(out.json);
	if (out.hlog) files_hlog_end(out.hlog, p, &r);
	note_error(out.hlog);
	close_output(out.json, o->json_path);
	close_output(out.tsv, o->tsv_path);
	close_output(out.hlog, o->hlog_path);
	const int status = verdict_explain(stderr, p, &r.total) ? 2 : measures_failed(&r.total) ? 1 : 0;
	errno = write_error; /* for usage_end() */
	return status;
}

int main(int argc, char **argv) {
	static struct options o;
	usage_program = "httpbench";
	if (argc > 1 && strcmp(argv[1], "merge") == 0) return usage_end(merge(argc - 1, argv + 1));
	if (argc > 1 && strcmp(argv[1], "compare") == 0) return usage_end(compare(argc - 1, argv + 1));
	options_parse(&o, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	(void)io_raise_descriptor_limit();
	if (o.start_s > 0 && !rank_wait(o.start_s)) usage_refuse("--start-at %.3f has passed", o.start_s);
	if (o.profile) profile_begin(o.profile);
	int status = usage_end(o.search || o.sweep ? run_series(&o) : run_once(&o));
	if (o.profile) profile_end();
	options_free(&o);
	return status;
}
