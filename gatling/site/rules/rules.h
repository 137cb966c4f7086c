/* rules.h - what files of rules have in common: limits, their lines, and reports of mistakes. */
#ifndef GATLING_SITE_RULES_RULES_H
#define GATLING_SITE_RULES_RULES_H

#include "gatling/base/slice.h"

enum {
	RULES_MAX = 4096,      /* rules of a file */
	RULES_ERROR_MAX = 200, /* bytes of a message, with its NUL */
	RULES_SHOWN_MAX = 40   /* bytes of the file that a message quotes at once */
};

/* A mistake, and what to write instead. */
struct rules_error {
	unsigned line;      /* the first is 1; 0: the mistake is not in a line, and the file gives no rules */
	struct slice whole; /* that line, trimmed; refers to the text that is read */
	bool last;          /* the lines below it are ignored, too, without a report */
	char text[RULES_ERROR_MAX];
};

struct upstreams_allowed; /* upstream/upstream_address.h */

/* Callbacks and settings for the reader of a file of rules. Embedded in a larger struct. */
struct rules_report {
	/* Called for each line that is ignored, or has no effect. NULL: these are not reported. */
	void (*tell)(struct rules_report *report, const struct rules_error *error);
	/* Called for what the owner of a correct line may want to know. NULL: that is not reported. */
	void (*note)(struct rules_report *report, const struct rules_error *error);
	/* Returns whether the site has a file for a path (decoded, with a '/' in front), which takes precedence over rules.
	 * NULL: what has no effect while the files are as they are is not reported. */
	bool (*there)(struct rules_report *report, struct slice path);
	const struct upstreams_allowed *upstreams; /* to which requests may be passed on; NULL: to none */
};

/* Fills in the text of the error, with '?' for everything but visible ASCII, since others may read what the owner
 * wrote. Returns false. */
bool rules_fail(struct rules_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fills in the error that a file has more than `most` things; the rest of the file is ignored. Returns false. */
bool rules_full(struct rules_error *error, int most, const char *things);

/* Fills in the error that there is no memory, with line 0. Returns false. */
bool rules_no_memory(struct rules_error *error);

/* The two arguments of a "%.*s" in the format of rules_fail(). */
#define RULES_SHOWN(s) (int)((s).length < RULES_SHOWN_MAX ? (s).length : RULES_SHOWN_MAX), (s).at

/* Takes the text before the first c, and that c, off the front. Returns the text before it, which is all if there is no
 * c. */
static inline struct slice rules_take_until(struct slice *text, char c) {
	struct slice part = slice_first(*text, slice_until(*text, c));
	slice_drop(text, part.length + (part.length < text->length));
	return part;
}

/* Takes over a copy of the text, to which the rules refer, and makes room for what that many lines may hold. Returns
 * false if there is no memory. */
typedef bool rules_begin(void *rules, struct slice copy, unsigned lines);

/* Adds a line, trimmed and neither empty nor a comment, to the rules; error->line is its number. Returns false, with an
 * error, if the line is to be ignored. */
typedef bool rules_add(void *rules, struct slice line, struct rules_error *error);

/* Begins the rules and adds each line of the text. Reports the lines that are ignored. Returns false, which is
 * reported, too, if the text is too large, there is no memory, or `rules` is NULL for lack of it. */
bool rules_read(void *rules, struct slice text, rules_begin *begin, rules_add *add, struct rules_report *report);

#endif
