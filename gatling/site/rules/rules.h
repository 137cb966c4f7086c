/* rules.h - what the files of rules have in common: their limits, their lines, and how a mistake in one is told. */
#ifndef GATLING_SITE_RULES_RULES_H
#define GATLING_SITE_RULES_RULES_H

#include "gatling/base/slice.h"

enum {
	RULES_MAX = 4096,             /* rules of a file */
	RULES_TEXT_MAX = 1024 * 1024, /* bytes of it */
	RULES_ERROR_MAX = 200,        /* bytes of what is said about it, the NUL included */
	RULES_SHOWN_MAX = 40          /* bytes of its text that are shown in that */
};

/* What is wrong, and what to write instead. */
struct rules_error {
	unsigned line;      /* the first is 1; 0: no single one is to blame, and there are no rules */
	struct slice whole; /* that line, trimmed; of the text that is read */
	char text[RULES_ERROR_MAX];
};

/* Is told of each line that is left out; the others are the rules. To be embedded in what it needs. */
struct rules_report {
	void (*tell)(struct rules_report *report, const struct rules_error *error);
	/* Is asked whether the site has a file at a path (decoded, with a '/' in front) that comes before a rule. NULL:
	 * there is none. */
	bool (*there)(struct rules_report *report, struct slice path);
};

/* Fills in the error; what is no visible ASCII becomes '?', for it may hold what somebody else wrote. */
void rules_fail(struct rules_error *error, unsigned line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The two arguments of a "%.*s" in its format. */
#define RULES_SHOWN(s) (int)((s).length < RULES_SHOWN_MAX ? (s).length : RULES_SHOWN_MAX), (s).at

/* The text without a byte order mark (UTF-8) in front. */
struct slice rules_text(struct slice text);

/* Takes the next line off the front, which ends with LF or CRLF, and trims it; false at the end. */
bool rules_next_line(struct slice *text, struct slice *line);

/* Takes a line, trimmed, neither empty nor a comment; its number is in *error. false, with an error, leaves it out. */
typedef bool rules_take(void *rules, struct slice line, struct rules_error *error);

/* Reads the text line by line. What take() finds wrong is told. false: that was about no single line; or the text is
 * too large. */
bool rules_read(struct slice text, rules_take *take, void *rules, struct rules_report *report);

/* Fills in the error that there is no memory, which is about no line. false. */
bool rules_no_memory(struct rules_error *error);

/* Takes the next word, which ends at a blank, off the front of *line; false at the end, or where a comment begins. */
bool rules_next_word(struct slice *line, struct slice *word);

/* Room for one more behind the `used` elements of that size: the array, or where it has moved to, with *capacity
 * changed. NULL: no memory, and the array is as it was. */
void *rules_grow(void *array, unsigned used, unsigned *capacity, size_t size);

#endif
