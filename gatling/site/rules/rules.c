/* rules.c - see rules.h. */
#include "gatling/site/rules/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/lines.h"
#include "gatling/base/slice.h"

bool rules_fail(struct rules_error *error, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof error->text, format, arguments);
	va_end(arguments);
	for (char *c = error->text; *c; c++)
		if ((*c < ' ' || *c > '~') && *c != '\t') *c = '?';
	return false;
}

bool rules_full(struct rules_error *error, int most, const char *things) {
	error->last = true;
	return rules_fail(error, "there are more than %d %s: this line and those below it are ignored", most, things);
}

bool rules_no_memory(struct rules_error *error) {
	error->line = 0;
	return rules_fail(error, "there is no memory");
}

static bool add_lines(void *rules, struct slice text, rules_add *add, struct rules_report *report,
					  struct rules_error *error) {
	for (struct lines lines = lines_of(text); lines_next_entry(&lines, &error->whole);) {
		error->line = lines.number;
		if (add(rules, error->whole, error)) continue;
		if (!error->line) return false;
		if (report->tell) report->tell(report, error);
		if (error->last) break;
	}
	return true;
}

bool rules_read(void *rules, struct slice text, rules_begin *begin, rules_add *add, struct rules_report *report) {
	struct rules_error error = {0};
	bool fits = text.length <= LINES_TEXT_MAX;
	char *memory = rules && fits ? malloc(text.length + 1) : NULL;
	if (memory) {
		unsigned lines = 1;
		(void)text_copy(memory, text);
		const struct slice copy = {.at = memory, .length = text.length};
		for (size_t i = 0; i < copy.length; i++) lines += memory[i] == '\n';
		if (begin(rules, copy, lines) && add_lines(rules, copy, add, report, &error)) return true;
	}
	if (fits) (void)rules_no_memory(&error);
	else (void)rules_fail(&error, "the file is too large: more than %d bytes", LINES_TEXT_MAX);
	if (report->tell) report->tell(report, &error);
	return false;
}
