/* options.h - the command line of httpbench: what is to be done, and where the results go. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/search.h"

struct options {
	struct plan plan;
	bool search, sweep; /* several runs */
	struct goal goal;   /* of the search */
	double start_s;     /* since the epoch; 0: at once */
	bool tui;
	const char *json_path, *tsv_path, *hlog_path; /* besides the report; NULL: nowhere */
	char **url, *urls_text;                       /* of --urls: what the targets are named by */
	unsigned urls;
};

/* Ends the program with a line about what is wrong, or with help. The arguments have to outlive the options. */
void options_parse(struct options *options, int argc, char **argv);

void options_free(struct options *options);

#endif
