/* hlog.h - writes and reads histograms as text, in the standard log format of the HdrHistogram libraries, V2 with
 * compressed counts. A line is an interval of one kind of duration, which its tag names. */
#ifndef BENCH_HLOG_H
#define BENCH_HLOG_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/httpbench/statistics/histogram.h"

enum { HLOG_TAG_MAX = 32, HLOG_LINE_MAX = 1024 * 1024 }; /* bytes of a tag, and of a line */

/* Writes the first lines. */
void hlog_begin(FILE *out, double started_s);

/* Writes one interval; its times are in seconds since the start. Censored samples are left out, since the format has
 * none. Returns 0, or -1 with errno. */
int hlog_write(FILE *out, const char *tag, double start_s, double length_s, const struct histogram *h);

struct hlog_line {
	char tag[HLOG_TAG_MAX + 1]; /* "" if the line has none */
	double start_s, length_s;
};

enum hlog_result { HLOG_INTERVAL, HLOG_COMMENT, HLOG_END, HLOG_BROKEN };

/* Reads the next interval and adds it to h, or reads the next comment and copies it to text (HLOG_LINE_MAX bytes)
 * without its '#'. Other lines are skipped. HLOG_BROKEN: text describes the error, and nothing was added. */
enum hlog_result hlog_read(FILE *in, struct hlog_line *line, struct histogram *h, char *text);

#endif
