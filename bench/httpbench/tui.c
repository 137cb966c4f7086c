/* tui.c - see tui.h. A screen is composed in memory, and written at once over the previous one. */
#include "bench/httpbench/tui.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "bench/httpbench/report.h"
#include "bench/interrupt.h"

enum {
	SPANS_MAX = 512,             /* that are kept: more than a terminal has columns */
	BINS_PER_OCTAVE = 4,         /* of durations, in the map */
	BINS = 42 * BINS_PER_OCTAVE, /* up to HISTOGRAM_HIGHEST */
	LABEL = 9,                   /* columns to the left of a map or of bars */
	ROWS_AROUND = 14,            /* lines other than those of the map */
	MAP_ROWS_MIN = 3,
	COLUMNS_MIN = 40
};

static const int64_t second_ns = 1000000000;

enum bar { BAR_ANSWERED, BAR_FAILED, BARS };

/* What happened in a period, which is a column. */
struct span {
	double bar[BARS]; /* requests a second */
	uint64_t answers;
	uint32_t bin[BINS]; /* answers by how long they took */
};

struct tui {
	const struct plan *plan;
	bool utf8;
	struct measures total;
	unsigned spans; /* spans so far; the last SPANS_MAX are kept */
	struct span span[SPANS_MAX];
};

static int bin_of(int64_t ns) {
	int bin = (int)(log2((double)(ns > 1 ? ns : 1)) * BINS_PER_OCTAVE);
	return bin < BINS ? bin : BINS - 1;
}

static double lowest_of(int bin) { return exp2((double)bin / BINS_PER_OCTAVE); }

static void put(const char *text) {
	fputs(text, stdout);
	fflush(stdout);
}

static struct termios terminal;

/* Restores the terminal. Async-signal-safe, because a second signal ends the program at once. */
static void give_back(void) {
	static const char back[] = "\033[?7h\033[?25h\033[?1049l";
	(void)!write(STDOUT_FILENO, back, sizeof back - 1);
	(void)tcsetattr(STDOUT_FILENO, TCSANOW, &terminal);
}

struct tui *tui_start(const struct plan *plan) {
	struct tui *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	t->plan = plan;
	setlocale(LC_CTYPE, "");
	t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	(void)tcgetattr(STDOUT_FILENO, &terminal);
	struct termios quiet = terminal;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	quiet.c_cc[VQUIT] = quiet.c_cc[VSUSP] = _POSIX_VDISABLE;
	(void)tcsetattr(STDOUT_FILENO, TCSANOW, &quiet);
	interrupt_before_end = give_back;
	put("\033[?1049h\033[?25l\033[?7l\033[H\033[J"); /* the alternate screen, no cursor, no line wrap */
	return t;
}

void tui_end(struct tui *t) {
	give_back();
	interrupt_before_end = NULL;
	free(t);
}

static void remember(struct tui *t, double length_s, const struct measures *m) {
	if (length_s < 1) length_s = 1; /* a column is a second; over a shorter time, the rate would be chance */
	struct span *s = &t->span[t->spans++ % SPANS_MAX];
	const struct histogram *h = &m->duration[DURATION_WHOLE];
	*s = (struct span){
		.bar = {(double)m->count[COUNT_ANSWERED] / length_s, (double)measures_failed(m) / length_s},
		.answers = h->samples,
	};
	unsigned last = h->samples ? histogram_index(h->most) : 0;
	for (unsigned i = h->samples ? histogram_index(h->least) : 1; i <= last; i++)
		s->bin[bin_of(histogram_highest(i))] += (uint32_t)h->count[i];
	measures_add(&t->total, m);
}

/* --- a screen --- */

struct screen {
	FILE *out;
	int columns, rows;
	unsigned first, end; /* the spans that are shown */
};

static const struct span *span_at(const struct tui *t, unsigned i) { return &t->span[i % SPANS_MAX]; }

/* Clears the rest of the line. */
static const char line_end[] = "\033[K\r\n";

static void end_line(const struct screen *s) { fputs(line_end, s->out); }

static void print_title(const struct tui *t, const struct screen *s, double now_s) {
	const struct plan *p = t->plan;
	char time[64], more[32] = "";
	if (p->duration_ns) snprintf(time, sizeof time, "%.0f s of %.0f s", now_s, (double)p->duration_ns / 1e9);
	else snprintf(time, sizeof time, "%.0f s", now_s);
	if (p->targets > 1) snprintf(more, sizeof more, " and %u more", p->targets - 1);
	int room = s->columns - (int)strlen(time) - (int)strlen(more) - 1;
	int used = fprintf(s->out, "\033[1m%.*s\033[0m", room, p->target->url) - 8;
	fprintf(s->out, "%s%*s", more, s->columns - used - (int)strlen(more), time);
	end_line(s);
	char load[64] = "closed loop";
	if (p->rate > 0) snprintf(load, sizeof load, "%.10g a second due", p->rate);
	fprintf(s->out, "%u connections, %u thread%s, %s", p->connections, p->clients, p->clients == 1 ? "" : "s", load);
	end_line(s);
	end_line(s);
}

/* Prints the answers or the failures of each second as a row of bars. */
static void print_bars(const struct tui *t, const struct screen *s, const char *label, enum bar bar) {
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {" ", ".", ".", ":", ":", "|", "|", "#", "#"};
	const char *const *level = t->utf8 ? blocks : letters;
	double most = 0, last = 0;
	for (unsigned i = s->first; i < s->end; i++) {
		last = span_at(t, i)->bar[bar];
		if (last > most) most = last;
	}
	fprintf(s->out, "%-*s%.0f a second, at most %.0f", LABEL, label, last, most);
	if (bar == BAR_FAILED && most > 0) report_failures(s->out, &t->total);
	end_line(s);
	fprintf(s->out, "%*s", LABEL, "");
	for (unsigned i = s->first; i < s->end; i++) {
		double value = span_at(t, i)->bar[bar];
		fputs(level[value > 0 ? (int)ceil(value / most * 8) : 0], s->out);
	}
	end_line(s);
}

/* Prints the map. Rows are durations, the longest on top; columns are seconds; darker means a larger share of the
 * answers. */
static void print_map(const struct tui *t, const struct screen *s) {
	static const char *const shades[] = {" ", "░", "▒", "▓", "█"}, *const letters[] = {" ", ".", ":", "+", "#"};
	const char *const *shade = t->utf8 ? shades : letters;
	int rows = s->rows - ROWS_AROUND, low = BINS, high = 0;
	for (unsigned i = s->first; i < s->end; i++)
		for (int b = 0; b < BINS; b++)
			if (span_at(t, i)->bin[b]) low = b < low ? b : low, high = b > high ? b : high;
	if (low > high) low = high = bin_of(second_ns); /* nothing was answered */
	int per_row = (high - low) / rows + 1;
	for (int row = rows - 1; row >= 0; row--) {
		char text[REPORT_TEXT];
		int from = low + row * per_row;
		fprintf(s->out, "%*s ", LABEL - 1, from < BINS ? report_duration(text, lowest_of(from), 0) : "");
		for (unsigned i = s->first; i < s->end; i++) {
			const struct span *span = span_at(t, i);
			uint64_t answers = 0;
			for (int b = from; b < from + per_row && b < BINS; b++) answers += span->bin[b];
			double share = answers ? (double)answers / (double)span->answers : 0;
			fputs(shade[share >= 0.5 ? 4 : share >= 0.2 ? 3 : share >= 0.05 ? 2 : answers ? 1 : 0], s->out);
		}
		end_line(s);
	}
}

static void print_screen(const struct tui *t, const struct screen *s, double now_s) {
	fputs("\033[H", s->out);
	print_title(t, s, now_s);
	print_bars(t, s, "answered", BAR_ANSWERED);
	print_bars(t, s, "failed", BAR_FAILED);
	print_map(t, s);
	end_line(s);
	report_durations(s->out, line_end, t->plan, &t->total);
}

void tui_show(struct tui *t, double from_s, double to_s, const struct measures *m) {
	struct winsize size = {0};
	char *text;
	size_t length;
	remember(t, to_s - from_s, m);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == -1 || !size.ws_col)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	struct screen s = {.columns = size.ws_col, .rows = size.ws_row, .end = t->spans};
	if (s.columns < COLUMNS_MIN || s.rows < ROWS_AROUND + MAP_ROWS_MIN) {
		put("\033[H\033[Jthe terminal is too small");
		return;
	}
	unsigned shown = (unsigned)(s.columns - LABEL);
	if (shown > SPANS_MAX) shown = SPANS_MAX;
	s.first = t->spans > shown ? t->spans - shown : 0;
	s.out = open_memstream(&text, &length);
	if (!s.out) return;
	print_screen(t, &s, to_s);
	if (fclose(s.out) == 0) {
		text[length - strlen(line_end)] = '\0'; /* a newline after the last line would scroll */
		put(text);
		put("\033[J");
	}
	free(text);
}
