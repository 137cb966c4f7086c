/* tui.h - shows a run on the whole terminal, second by second: the rates of answers and failures, and a map of how long
 * the answers took. Writes the control sequences of ECMA-48 to stdout. */
#ifndef BENCH_TUI_H
#define BENCH_TUI_H

#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/load/run.h"

struct tui;

/* Takes over the terminal. Without memory, returns NULL and leaves the terminal alone. */
struct tui *tui_start(const struct plan *plan);

/* Shows the next period of the run; its times are in seconds since the start. */
void tui_show(struct tui *tui, double from_s, double to_s, const struct measures *m);

/* Restores the terminal and frees tui. */
void tui_end(struct tui *tui);

#endif
