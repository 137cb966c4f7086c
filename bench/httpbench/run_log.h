/* run_log.h - reads a log that --hlog wrote, or another program: settings, totals, and the histogram of each second. */
#ifndef BENCH_RUN_LOG_H
#define BENCH_RUN_LOG_H

#include "bench/httpbench/hlog.h"
#include "bench/httpbench/load/run.h"

struct run_log {
	const char *path;
	char *plan;   /* the settings; NULL: another program made the log, or its first lines are missing */
	double end_s; /* of the last interval */
	unsigned rank;
	struct run run; /* elapsed_s 0: nothing could be read */
};

/* Called for each interval of a duration; failed: h has those that failed, as if each had taken the timeout. */
typedef void run_log_interval(void *context, const struct run_log *log, const struct hlog_line *line,
							  enum duration duration, bool failed, const struct histogram *h);

/* Reads a log, and adds its intervals up. Returns 0; or -1 after a line on stderr: it cannot be read, or not to its
 * end. The path has to last; *log is to be freed in any case. */
int run_log_read(struct run_log *log, const char *path, run_log_interval *take, void *context);
void run_log_free(struct run_log *log);

/* Prints "httpbench: PATH: ..." to stderr. Returns -1. */
__attribute__((format(printf, 2, 3))) int run_log_complain(const char *path, const char *format, ...);

/* Returns the number after a name in the settings of a log; 0: it is not there, or none above 0. */
uint64_t run_log_number(const char *text, const char *name);
double run_log_real(const char *text, const char *name);

#endif
