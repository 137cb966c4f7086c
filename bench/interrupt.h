/* interrupt.h - SIGINT or SIGTERM ends a run early, and its results so far are reported. A second signal ends the
 * program at once, with the status 128 plus the signal's number. Signals within 0.3 s, as timeout(1) sends them, count
 * as one. */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Whether a signal has come. */
extern volatile sig_atomic_t interrupt_came;

/* For signal handlers: notes a signal. Returns whether it is a later one than the first. Async-signal-safe. */
bool interrupt_is_later(void);

/* Called before a later signal ends the program; must be async-signal-safe. NULL: nothing is called. */
extern void (*interrupt_before_end)(void);

/* Catches the signals from here on. System calls that they interrupt are restarted, except those that wait. */
void interrupt_catch(void);

#endif
