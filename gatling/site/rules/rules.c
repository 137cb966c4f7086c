/* rules.c - see rules.h. */
#include "gatling/site/rules/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROW_FIRST = 16 };

void rules_fail(struct rules_error *error, unsigned line, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof error->text, format, arguments);
	va_end(arguments);
	for (char *c = error->text; *c; c++)
		if (*c < ' ' || *c > '~') *c = '?';
	error->line = line;
}

bool rules_no_memory(struct rules_error *error) {
	rules_fail(error, 0, "there is no memory");
	return false;
}

struct slice rules_text(struct slice text) {
	static const struct slice mark = SLICE("\xEF\xBB\xBF");
	bool marked = text.length >= mark.length && memcmp(text.at, mark.at, mark.length) == 0;
	size_t skipped = marked ? mark.length : 0;
	return (struct slice){.at = text.at + skipped, .length = text.length - skipped};
}

bool rules_next_line(struct slice *rest, struct slice *line) {
	if (!rest->length) return false;
	const char *end = memchr(rest->at, '\n', rest->length);
	size_t length = end ? (size_t)(end - rest->at) : rest->length;
	*line = (struct slice){.at = rest->at, .length = length};
	if (line->length && line->at[line->length - 1] == '\r') line->length--;
	*line = slice_trim(*line);
	rest->at += length + (end ? 1 : 0);
	rest->length -= length + (end ? 1 : 0);
	return true;
}

bool rules_read(struct slice text, rules_take *take, void *rules, struct rules_report *report) {
	struct rules_error error = {0};
	if (text.length > RULES_TEXT_MAX) {
		rules_fail(&error, 0, "the file is too large: more than %d bytes", RULES_TEXT_MAX);
		report->tell(report, &error);
		return false;
	}
	text = rules_text(text);
	for (unsigned number = 1; rules_next_line(&text, &error.whole); number++) {
		error.line = number;
		if (!error.whole.length || error.whole.at[0] == '#' || take(rules, error.whole, &error)) continue;
		report->tell(report, &error);
		if (!error.line) return false;
	}
	return true;
}

bool rules_next_word(struct slice *line, struct slice *word) {
	size_t n = 0;
	*line = slice_trim(*line);
	if (!line->length || line->at[0] == '#') return false;
	while (n < line->length && line->at[n] != ' ' && line->at[n] != '\t') n++;
	*word = (struct slice){.at = line->at, .length = n};
	line->at += n;
	line->length -= n;
	return true;
}

void *rules_grow(void *array, unsigned used, unsigned *capacity, size_t size) {
	if (used < *capacity) return array;
	unsigned wanted = *capacity ? 2 * *capacity : GROW_FIRST;
	void *grown = realloc(array, wanted * size);
	if (grown) *capacity = wanted;
	return grown;
}
