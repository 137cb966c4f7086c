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

/* How grave a line is, as in syslog(3). In front of lines for the journal of systemd it stands as "<4>" (sd-daemon(3)).
 */
enum notice_level {
	LEVEL_ERROR = 3,   /* something does not work */
	LEVEL_WARNING = 4, /* it goes on, but somebody has to do something */
	LEVEL_NOTICE = 5,  /* what an owner may want to know */
	LEVEL_INFO = 6     /* what is in force */
};

/* Finds out whether stderr is the journal (JOURNAL_STREAM, systemd.exec(5)). */
void notice_open(void);

/* Prints "gatling: ..." on stderr, one line in one piece. Thread-safe. */
void notice_line(enum notice_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line as a warning, unless it was printed before with the same state. state: of the thing that the line is
 * about, which is reported again when that changes. Bytes that are not visible ASCII become '?', since others may have
 * chosen them. Returns whether it was printed. Thread-safe. */
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
