/* options.h - the command line of httpbench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <sys/types.h>

#include "bench/httpbench/load/inputs.h"
#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/search.h"

struct options {
	struct plan plan;
	bool search, sweep; /* make several runs */
	struct goal goal;   /* the goal of the search */
	double start_s;     /* seconds since the epoch; 0: at once */
	bool tui;
	const char *json_path, *tsv_path, *hlog_path; /* where results go besides the report, or NULL */
	pid_t profile;                                /* a process to sample during the run; 0: none */
	struct input_urls urls;                       /* of --urls; targets point into them */
};

/* output_is_stdout() returns whether an output goes to stdout instead of the report, which then goes to stderr. */
bool output_is_stdout(const char *name);
int outputs_on_stdout(const struct options *options); /* counts these */

/* Parses the command line. Exits after an error message, or after the help. The arguments must outlive options. */
void options_parse(struct options *options, int argc, char **argv);

void options_free(struct options *options);

#endif
