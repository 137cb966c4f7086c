/* tui.h - a run on the whole terminal while it lasts: how many are answered and fail, and a map of how long the answers
 * take, second by second. Writes to stdout, with the control sequences of ECMA-48. */
#ifndef BENCH_TUI_H
#define BENCH_TUI_H

#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/load/run.h"

struct tui;

/* Takes the terminal. NULL: no memory; nothing was done. */
struct tui *tui_start(const struct plan *plan);

/* Shows a span of the run, after those before it; seconds since the start. */
void tui_show(struct tui *tui, double from_s, double to_s, const struct measures *m);

/* Gives the terminal back as it was, and frees all. */
void tui_end(struct tui *tui);

#endif
