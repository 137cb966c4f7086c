/* lines.h - the lines of a text that people write: rules, passwords, media types. */
#ifndef GATLING_BASE_LINES_H
#define GATLING_BASE_LINES_H

#include "gatling/base/slice.h"

enum { LINES_TEXT_MAX = 1024 * 1024 /* bytes of a file of lines */ };

struct lines {
	struct slice rest;
	unsigned number; /* of the last line that was taken; the first is 1 */
};

/* Returns the lines of a text, without a UTF-8 byte order mark at its start. */
struct lines lines_of(struct slice text);

/* Takes the next line, which ends with LF or CRLF, and trims it. Returns false at the end. */
bool lines_next(struct lines *lines, struct slice *line);

/* Does the same, but skips lines that are empty or begin with '#'. */
bool lines_next_entry(struct lines *lines, struct slice *line);

/* Takes the next word, which ends at a space or tab, off the front of a line. Returns false at the end, or where a
 * comment begins. */
bool lines_next_word(struct slice *line, struct slice *word);

#endif
