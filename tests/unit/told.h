/* told.h - collects the errors that parsers of rules report. */
#ifndef TESTS_UNIT_TOLD_H
#define TESTS_UNIT_TOLD_H

#include "gatling/site/rules/rules.h"

struct told {
	struct rules_report report;
	unsigned count;
	struct rules_error first, last;
};

static void remember(struct rules_report *report, const struct rules_error *error) {
	struct told *told = (struct told *)report;
	if (!told->count++) told->first = *error;
	told->last = *error;
}

static const struct told nothing_told = {.report.tell = remember};

#endif
