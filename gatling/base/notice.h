/* notice.h - tells the owner of a site what is wrong, each thing once, whichever worker finds it: on stderr while the
 * server runs, on stdout with --check. */
#ifndef GATLING_BASE_NOTICE_H
#define GATLING_BASE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NOTICES_MAX = 1024,    /* the last ones, which are not repeated */
	NOTICE_TEXT_MAX = 1024 /* bytes of one, with its NUL; the rest is cut off */
};

/* Prints a line, unless it was printed before with the same state. state: of the thing that the line is about, which is
 * reported again when that changes. Bytes that are not visible ASCII become '?', since others may have chosen them.
 * Returns whether it was printed. Thread-safe. */
bool notice(uint64_t state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "gatling: cannot ACTION NAME: REASON" on stderr; NAME may be NULL. Returns -1. */
int notice_cannot(const char *action, const char *name, const char *reason);

/* Makes all further notices findings of --check. */
void notice_check(void);
bool notice_checks(void);

/* Returns how many notices there were. */
unsigned notices(void);

#endif
