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

void view_json(FILE *out, const struct status_view *view);
void view_openmetrics(FILE *out, const struct status_view *view); /* openmetrics.io, version 1.0 */
void view_page(FILE *out, const struct status_view *view);        /* HTML that shows what it reads from "json" */
void view_text(FILE *out, const struct status_view *view);        /* in 80 columns */

/* A figure for the time between two moments: figures.c has a row for each. */
struct figure {
	const char *name, *text; /* in JSON; in the text */
	const char *unit;        /* for people, as the page knows it */
	double scale;            /* of the figure in that unit */
	const char *title;       /* in the page */
	unsigned curve;          /* its place among the curves there, from 1; 0: there is none */
	double (*of)(const struct figure *figure, const struct moment *from, const struct moment *to);
	enum value first, last; /* whose sum it is */
	double share;           /* of the times that are not longer */
	bool instant;           /* it is that of `to` alone */
};

/* In the order of JSON and the text. The name of the last one is NULL. */
extern const struct figure figures[];

#endif
