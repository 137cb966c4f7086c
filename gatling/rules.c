/* rules.c - see rules.h. */
#include "gatling/rules.h"

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

bool rules_lines(struct rules_lines *lines, struct slice text, struct rules_error *error) {
	static const struct slice mark = SLICE("\xEF\xBB\xBF");
	*lines = (struct rules_lines){.rest = text};
	if (text.length > RULES_TEXT_MAX) {
		rules_fail(error, 0, "the file is too large: more than %d bytes", RULES_TEXT_MAX);
		return false;
	}
	if (text.length >= mark.length && memcmp(text.at, mark.at, mark.length) == 0) {
		lines->rest.at += mark.length;
		lines->rest.length -= mark.length;
	}
	return true;
}

bool rules_next_line(struct rules_lines *lines, struct slice *line) {
	struct slice *rest = &lines->rest;
	if (!rest->length) return false;
	const char *end = memchr(rest->at, '\n', rest->length);
	size_t length = end ? (size_t)(end - rest->at) : rest->length;
	*line = (struct slice){.at = rest->at, .length = length};
	if (line->length && line->at[line->length - 1] == '\r') line->length--;
	rest->at += length + (end ? 1 : 0);
	rest->length -= length + (end ? 1 : 0);
	lines->line++;
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
