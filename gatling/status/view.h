/* view.h - what the status page shows, and the forms in which it does. */
#ifndef GATLING_STATUS_VIEW_H
#define GATLING_STATUS_VIEW_H

#include <stdio.h>

#include "gatling/status/certified.h"
#include "gatling/status/history.h"

struct status_view {
	const char *about; /* what is served where, as printed at the start */
	const struct history *history;
	const struct counters *const *worker;
	unsigned workers;
	int64_t up_s; /* since the start */
	bool ending;  /* it has been told to end */
	struct certified_list *certified;
};

/* Figures for the time between two moments. */
enum figure {
	FIGURE_REQUESTS, /* requests a second */
	FIGURE_SENT,     /* bytes a second */
	FIGURE_CONNECTIONS,
	FIGURE_FIRST_50, /* seconds until the first byte of an answer: 50 and 99 % */
	FIGURE_FIRST_99,
	FIGURE_DURATION_50, /* seconds until all of it was given to the kernel */
	FIGURE_DURATION_99,
	FIGURE_ERRORS,  /* answers of 500 and more, a second */
	FIGURE_REFUSED, /* connections and requests that the server refused, a second */
	FIGURE_QUEUE,   /* connections in the longest accept queue, at the end */
	FIGURE_LOST,    /* connections that the kernel dropped, a second */
	FIGURE_BUSY,    /* processors that the workers use */
	FIGURE_HITS,    /* share of the existing files, as looked up, that were in the cache; 0: none was */
	FIGURES
};

struct figure_name {
	const char *name, *text, *unit; /* text and unit: for people */
	double scale;                   /* of the figure in that unit */
};

extern const struct figure_name figure_name[FIGURES];

double figure_of(const struct moment *from, const struct moment *to, enum figure figure);

/* Returns the number of connections, whatever they do. */
uint64_t view_connections(const struct counters *c);

void view_json(FILE *out, const struct status_view *view);
void view_openmetrics(FILE *out, const struct status_view *view); /* openmetrics.io, version 1.0 */
void view_text(FILE *out, const struct status_view *view);        /* in 80 columns */
extern const char view_page[];                                    /* HTML that shows what it reads from "json" */

#endif
