/* notice.h - what the owner of a site is told, each thing once, whichever worker finds it: on stderr while the server
 * runs; all of it on stdout with --check. */
#ifndef GATLING_BASE_NOTICE_H
#define GATLING_BASE_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	NOTICES_MAX = 1024,    /* that are remembered to have been said, the last ones */
	NOTICE_TEXT_MAX = 1024 /* bytes of one, with its NUL; the rest is cut off */
};

/* Says it in a line, unless it has been said. state: of what it is about; when that changes, it is said again. What is
 * no visible ASCII becomes '?', for it may hold what somebody else wrote. Whether it was said. Thread-safe. */
bool notice(uint64_t state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* From now on all of them are findings of --check; how many there have been. */
void notice_check(void);
bool notice_checks(void);
unsigned notices(void);

#endif
