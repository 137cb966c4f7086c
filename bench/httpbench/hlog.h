/* hlog.h - histograms as text: the standard log of the HdrHistogram libraries, V2 with compressed counts, which their
 * tools read. A line is an interval of one kind of duration, told apart by its tag. */
#ifndef BENCH_HLOG_H
#define BENCH_HLOG_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/httpbench/load/histogram.h"

enum { HLOG_TAG_MAX = 32, HLOG_LINE_MAX = 1024 * 1024 }; /* bytes of a tag, and of a line that is read */

/* Writes the first lines. */
void hlog_begin(FILE *out, double started_s);

/* Writes one interval, in seconds since the start. Censored samples are left out: the format has none. Returns 0, or -1
 * with errno. */
int hlog_write(FILE *out, const char *tag, double start_s, double length_s, const struct histogram *h);

struct hlog_line {
	char tag[HLOG_TAG_MAX + 1]; /* "" without a tag */
	double start_s, length_s;
};

enum hlog_result { HLOG_INTERVAL, HLOG_COMMENT, HLOG_END, HLOG_BROKEN };

/* Reads the next interval and adds it to h, or the next comment, which is copied to text (HLOG_LINE_MAX bytes) without
 * its '#'. Other lines are skipped. HLOG_BROKEN: text says what is wrong; nothing was added. */
enum hlog_result hlog_read(FILE *in, struct hlog_line *line, struct histogram *h, char *text);

#endif
