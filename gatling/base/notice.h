/* notice.h - tells the owner what is wrong, each thing once, whichever worker finds it: on stderr or in the error log
 * while the server runs, on stdout with --check. */
#ifndef GATLING_BASE_NOTICE_H
#define GATLING_BASE_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NOTICES_MAX = 1024,     /* the last ones, which are not repeated */
	NOTICE_AGAIN_S = 60,    /* between two lines about the same kind of event */
	NOTICE_TEXT_MAX = 1024, /* bytes of one, with its NUL; the rest is cut off */
	NOTICE_BURST = 100,     /* lines of a kind, which have the same format, in a second; the others are counted */
	NOTICE_KINDS = 64       /* that are told apart */
};

/* How grave a line is, as in syslog(3). In front of lines for the journal of systemd it stands as "<4>" (sd-daemon(3)).
 */
enum notice_level {
	LEVEL_ERROR = 3,   /* something does not work */
	LEVEL_WARNING = 4, /* it goes on, but somebody has to do something */
	LEVEL_NOTICE = 5,  /* what an owner may want to know */
	LEVEL_INFO = 6     /* what is in force */
};

extern const char *const notice_level_name[LEVEL_INFO + 1];

/* Leaves out lines that are less grave than that; before there are threads. */
void notice_threshold(enum notice_level level);

/* Gives all lines to a function, too, which is called by one thread at a time; NULL: to none. */
typedef void notice_sink(void *owner, enum notice_level level, const char *text);
void notice_to(notice_sink *sink, void *owner);

/* Chooses whether lines go to stderr while there is such a function; at first they do. */
void notice_echo(bool echo);

/* Prints a line about the function itself as an error on stderr alone, if that has room. */
void notice_of_sink(const char *text);

/* From now on a line for which stderr has no room is left out, and counted: a thread that serves clients does not wait
 * for the reader of a pipe, or for a terminal that was stopped. */
void notice_serving(void);

/* Says how many lines were left out, if that has to be said; notice_line() does so, too. Returns whether some were left
 * out in this second. */
bool notice_tidy(void);

/* Finds out whether stderr is the journal (JOURNAL_STREAM, systemd.exec(5)). */
void notice_open(void);

/* Prints "gatling: ..." on stderr, one line in one piece, unless there were NOTICE_BURST with this format in this
 * second. Thread-safe. */
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
