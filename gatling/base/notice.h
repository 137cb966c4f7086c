/* notice.h - tells the owner of a site what is wrong, each thing once, whichever worker finds it: on stderr while the
 * server runs, on stdout with --check. */
#ifndef GATLING_BASE_NOTICE_H
#define GATLING_BASE_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NOTICES_MAX = 1024,    /* the last ones, which are not repeated */
	NOTICE_AGAIN_S = 60,   /* between two lines about the same kind of event */
	NOTICE_TEXT_MAX = 1024 /* bytes of one, with its NUL; the rest is cut off */
};

/* Prints a line, unless it was printed before with the same state. state: of the thing that the line is about, which is
 * reported again when that changes. Bytes that are not visible ASCII become '?', since others may have chosen them.
 * Returns whether it was printed. Thread-safe. */
bool notice(uint64_t state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* When a line that may come again and again may be printed next; 0 at first. */
typedef atomic_llong notice_time;

/* Returns whether it may be printed now: once every NOTICE_AGAIN_S, by any thread. */
bool notice_due(notice_time *next);

/* Prints "gatling: cannot ACTION NAME: REASON" on stderr; NAME may be NULL. Returns -1. */
int notice_cannot(const char *action, const char *name, const char *reason);

/* Copies what notice_cannot() has printed last, without "gatling: ", to text; "" if there is nothing. Thread-safe. */
void notice_last(char *text, size_t size);

/* Makes all further notices findings of --check. */
void notice_check(void);
bool notice_checks(void);

/* Returns how many notices there were. */
unsigned notices(void);

#endif
