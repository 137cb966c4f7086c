/* rules.h - what the files of rules have in common: their limits, their lines, and how a mistake in one is told. */
#ifndef GATLING_RULES_H
#define GATLING_RULES_H

#include "gatling/slice.h"

enum {
	RULES_MAX = 4096,             /* rules of a file */
	RULES_TEXT_MAX = 1024 * 1024, /* bytes of it */
	RULES_ERROR_MAX = 160,        /* bytes of what is said about it, the NUL included */
	RULES_SHOWN_MAX = 40          /* bytes of its text that are shown in that */
};

struct rules_error {
	unsigned line; /* the first is 1; 0: no single one is to blame */
	char text[RULES_ERROR_MAX];
};

/* Fills in the error; what is no visible ASCII becomes '?', for it may hold what somebody else wrote. */
void rules_fail(struct rules_error *error, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The two arguments of a "%.*s" in its format. */
#define RULES_SHOWN(s) (int)((s).length < RULES_SHOWN_MAX ? (s).length : RULES_SHOWN_MAX), (s).at

struct rules_lines {
	struct slice rest;
	unsigned line; /* number of the last one taken */
};

/* The lines of that text, without a byte order mark (UTF-8) in front. false: it is too large, and the error says so. */
bool rules_lines(struct rules_lines *lines, struct slice text, struct rules_error *error);

/* Takes the next line, without its LF or CRLF; false at the end. */
bool rules_next_line(struct rules_lines *lines, struct slice *line);

/* Takes the next word, which ends at a blank, off the front of *line; false at the end, or where a comment begins. */
bool rules_next_word(struct slice *line, struct slice *word);

/* Room for one more behind the `used` elements of that size: the array, or where it has moved to, with *capacity
 * changed. NULL: no memory, and the array is as it was. */
void *rules_grow(void *array, unsigned used, unsigned *capacity, size_t size);

#endif
