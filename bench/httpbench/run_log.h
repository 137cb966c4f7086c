/* run_log.h - reads a log that --hlog or another program wrote: settings, totals, and the histograms of each second. */
#ifndef BENCH_RUN_LOG_H
#define BENCH_RUN_LOG_H

#include "bench/httpbench/hlog.h"
#include "bench/httpbench/load/run.h"

struct run_log {
	const char *path;
	char *plan;    /* the settings; NULL: another program wrote the log, or its first lines are missing */
	char *verdict; /* its word and its reason; NULL likewise */
	double end_s;  /* the end of the last interval */
	unsigned rank;
	struct run run; /* elapsed_s 0: nothing could be read */
};

/* Called for each interval of a duration. failed: h holds requests that failed, as if each had reached the timeout. */
typedef void run_log_interval(void *context, const struct run_log *log, const struct hlog_line *line,
							  enum duration duration, bool failed, const struct histogram *h);

/* Reads a log, and adds up its intervals. Returns 0, or -1 after a message on stderr if the log cannot be read to its
 * end. path must remain valid; the caller frees *log in either case. */
int run_log_read(struct run_log *log, const char *path, run_log_interval *take, void *context);
void run_log_free(struct run_log *log);

/* Prints "httpbench: PATH: ..." to stderr. Returns -1. */
__attribute__((format(printf, 2, 3))) int run_log_complain(const char *path, const char *format, ...);

/* Return the number behind a name in the settings of a log, or 0 if it is missing or not positive. */
uint64_t run_log_number(const char *text, const char *name);
double run_log_real(const char *text, const char *name);

#endif
