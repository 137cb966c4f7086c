/* interrupt.h - SIGINT and SIGTERM end a run early, with what it has measured. A later one ends the program at once,
 * with the status 128 and its number. timeout(1) sends two at once, which count as one. */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Whether one has come and was noted. */
extern volatile sig_atomic_t interrupt_came;

/* For a handler: notes a signal. Returns whether it is a later one; async-signal-safe. */
bool interrupt_is_later(void);

/* What a later one calls before it ends the program; async-signal-safe. NULL: nothing. */
extern void (*interrupt_before_end)(void);

/* Catches them from here on. Calls of the system that they interrupt go on, but for those that wait. */
void interrupt_catch(void);

#endif
