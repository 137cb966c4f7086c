/* options.h - the command line of httpbench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <sys/types.h>

#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/search.h"

struct options {
	struct plan plan;
	bool search, sweep; /* several runs */
	struct goal goal;   /* of the search */
	double start_s;     /* since the epoch; 0: at once */
	bool tui;
	const char *json_path, *tsv_path, *hlog_path; /* besides the report; NULL: nowhere */
	pid_t profile;                                /* a process to sample meanwhile; 0: none */
	char **url, *urls_text;                       /* of --urls: what the targets are named by */
	unsigned urls, *url_line;                     /* in that file */
};

/* Whether an output takes the place of the report on stdout, which then goes to stderr. */
bool output_is_stdout(const char *name);
int outputs_on_stdout(const struct options *options); /* how many do */

/* Parses the command line. Exits after a line about an error, or after the help. The arguments must outlive options. */
void options_parse(struct options *options, int argc, char **argv);

void options_free(struct options *options);

#endif
