/* notice.h - messages to the administrator. They go to stderr or the error log while the server runs, and to stdout
 * with --check. Each mistake is reported once, whichever worker finds it. */
#ifndef GATLING_BASE_NOTICE_H
#define GATLING_BASE_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NOTICES_MAX = 1024,     /* the last notices, which are not repeated */
	NOTICE_AGAIN_S = 60,    /* seconds between two lines about the same kind of event */
	NOTICE_TEXT_MAX = 1024, /* bytes of a notice with its NUL; the rest is cut off */
	NOTICE_BURST = 100,     /* lines with the same format in a second; further ones are only counted */
	NOTICE_KINDS = 64       /* formats that are counted separately */
};

/* The severity of a line, as in syslog(3). Lines for the journal of systemd begin with it, as "<4>" (sd-daemon(3)). */
enum notice_level {
	LEVEL_ERROR = 3,   /* something does not work */
	LEVEL_WARNING = 4, /* it works, but somebody has to do something */
	LEVEL_NOTICE = 5,  /* something that an administrator may want to know */
	LEVEL_INFO = 6     /* what is served, and how */
};

extern const char *const notice_level_name[LEVEL_INFO + 1];

/* Leaves out lines that are less severe than level from now on. Call it before there are threads. */
void notice_threshold(enum notice_level level);

/* Passes all lines to sink(owner, ...), too, from one thread at a time; NULL: to no function. */
typedef void notice_sink(void *owner, enum notice_level level, const char *text);
void notice_to(notice_sink *sink, void *owner);

/* Sets whether lines go to stderr while there is a sink; at first they do. */
void notice_echo(bool echo);

/* Prints an error about the sink itself, only on stderr, if that has room. */
void notice_of_sink(const char *text);

/* From now on leaves out lines for which stderr has no room, and counts them, so that no thread that serves clients
 * waits for the reader of a pipe or for a stopped terminal. */
void notice_serving(void);

/* Prints how many lines were left out before this second; notice_line() does so, too. Returns whether it has to be
 * called again, since some were left out in this second, or stderr has no room. */
bool notice_tidy(void);

/* Finds out whether stderr is the journal (JOURNAL_STREAM, systemd.exec(5)). */
void notice_open(void);

/* Prints "gatling: ..." on stderr, as a whole line, unless NOTICE_BURST lines with this format were printed in this
 * second. Thread-safe. */
void notice_line(enum notice_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line as a warning, unless it was printed before with the same state. state: a value that changes with the
 * thing that the line is about, so that it is reported again. Bytes that are neither visible ASCII nor blanks become
 * '?', since others may have chosen them. Returns whether it was printed. Thread-safe. */
bool notice(uint64_t state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The time when a line that may come again and again may be printed next; 0 at first. */
typedef atomic_llong notice_time;

/* Returns whether the line may be printed now, and sets the next time: in NOTICE_AGAIN_S seconds, for all threads. */
bool notice_due(notice_time *next);

/* Prints the error "gatling: cannot ACTION NAME: REASON"; NAME may be NULL. Returns -1. */
int notice_cannot(const char *action, const char *name, const char *reason);

/* Copies the last line of notice_cannot(), without "gatling: ", to text (size bytes); "" if there is none.
 * Thread-safe. */
void notice_last(char *text, size_t size);

/* Makes notice() print findings of --check from now on. notice_checks() returns whether it does. */
void notice_check(void);
bool notice_checks(void);

/* Prints a finding of --check that is no mistake, so that it does not count as a notice. */
void notice_remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns how many notices there have been. */
unsigned notices(void);

#endif
