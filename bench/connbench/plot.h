/* plot.h - draws what connbench has measured with gnuplot(1), as SVG. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdint.h>
#include <sys/types.h>

/* A row of the table: how many connections were open, and times in ns; those on an idle connection are 0 if there was
 * none. */
struct plot_row {
	unsigned open;
	int64_t connect, whole_new, whole_idle;
};

struct plot;

/* Makes the file, and starts gnuplot, which waits for rows. Exits with a message if either is impossible. The title is
 * text for gnuplot in quotes: it may have no quote. A program has one plot. */
struct plot *plot_begin(const char *path, const char *title);

/* Takes a row. */
void plot_row(struct plot *plot, const struct plot_row *row);

/* Draws the rows, or removes the file if there are none. Returns 0, or -1 after a message on stderr. */
int plot_end(struct plot *plot);

#endif
