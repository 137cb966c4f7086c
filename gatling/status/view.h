/* view.h - what is shown of a running server, and the forms in which it is shown. */
#ifndef GATLING_STATUS_VIEW_H
#define GATLING_STATUS_VIEW_H

#include <stdio.h>

#include "gatling/status/certified.h"
#include "gatling/status/history.h"

struct status_view {
	const char *about; /* what is served where, as the server says at its start */
	const struct history *history;
	const struct counters *const *worker;
	unsigned workers;
	int64_t up_s; /* since the start */
	bool ending;  /* it has been told to end */
	struct certified_list *certified;
};

/* What has happened between two moments. */
enum figure {
	FIGURE_REQUESTS, /* a second, as all that has no unit here */
	FIGURE_SENT,     /* bytes a second */
	FIGURE_CONNECTIONS,
	FIGURE_FIRST_50, /* quantiles in seconds: until the first byte, */
	FIGURE_FIRST_99,
	FIGURE_DURATION_50, /* and until all of the answer was given to the kernel */
	FIGURE_DURATION_99,
	FIGURE_ERRORS,  /* answers of 500 and more */
	FIGURE_REFUSED, /* connections and requests that the server refused */
	FIGURE_QUEUE,   /* connections in the longest accept queue, */
	FIGURE_LOST,    /* those that found it full, and those that the kernel dropped */
	FIGURE_BUSY,    /* processors that the workers use */
	FIGURE_HITS,    /* the share of the files that were there that the cache remembered; 0: none was looked up */
	FIGURES
};

struct figure_name {
	const char *name, *text, *unit; /* text: for people */
	double scale;                   /* of what people read */
};

extern const struct figure_name figure_name[FIGURES];

double figure_of(const struct moment *from, const struct moment *to, enum figure figure);

/* Returns the sum of the connections, whatever they do. */
uint64_t view_connections(const struct counters *c);

void view_json(FILE *out, const struct status_view *view);
void view_openmetrics(FILE *out, const struct status_view *view); /* openmetrics.io, version 1.0 */
void view_text(FILE *out, const struct status_view *view);        /* in 80 columns */
extern const char view_page[];                                    /* HTML that shows what it reads from "json" */

#endif
