/* view_text.c - see view.h: for a terminal. */
#include <time.h>
#include <inttypes.h>
#include <string.h>

#include "gatling/status/upstream_counts.h"
#include "gatling/status/view.h"

enum { COLUMNS = 80, NAME_WIDTH = 14, SPANS = 4 };

/* A line of items, which goes on in a new line where it would be too long. */
struct text_line {
	FILE *out;
	size_t used;
};

static void put_item(struct text_line *l, const char *name, const char *text, uint64_t number) {
	char item[COLUMNS];
	int n = snprintf(item, sizeof item, "%s %" PRIu64, text, number);
	if (!l->used) {
		fprintf(l->out, "%-*s", NAME_WIDTH, name);
		l->used = NAME_WIDTH;
	} else if (l->used + 2 + (size_t)n > COLUMNS) {
		fprintf(l->out, "\n%-*s", NAME_WIDTH, "");
		l->used = NAME_WIDTH;
	} else if (l->used > NAME_WIDTH) {
		fputs("  ", l->out);
		l->used += 2;
	}
	fputs(item, l->out);
	l->used += (size_t)n;
}

static void end_line(struct text_line *l) {
	if (l->used) putc('\n', l->out);
	l->used = 0;
}

static void put_answers(struct text_line *l, const struct counters *c) {
	for (unsigned i = 0; i < STATUSES; i++) {
		char status[8];
		snprintf(status, sizeof status, "%u:", i + STATUS_FIRST);
		if (counters_answers(c, i)) put_item(l, "answers", status, counters_answers(c, i));
	}
}

/* Returns a value in seconds or MB, if it has a unit. */
static uint64_t in_unit(const struct value_row *row, uint64_t number) {
	if (row->per_unit) return number / row->per_unit;
	return row->unit ? number >> 20 : number;
}

/* Writes the lines of values. The answers have no values: their line is by status. */
static void put_values(FILE *out, const struct counters *c) {
	static const char *const lines[] = {"connections", "requests", "answers",     "cache",      "handshakes", "refused",
										"over limits", "closed",   "log dropped", "memory, MB", "kernel"};
	for (unsigned n = 0; n < sizeof lines / sizeof *lines; n++) {
		struct text_line line = {.out = out};
		enum value value[VALUES];
		const unsigned count = values_in(IN_TEXT, lines[n], value);
		for (unsigned i = 0; i < count; i++) {
			const struct value_row *row = &value_row[value[i]];
			const uint64_t number = c->value[value[i]];
			if (number || row->place[IN_TEXT].always)
				put_item(&line, lines[n], row->place[IN_TEXT].words, in_unit(row, number));
		}
		if (!count) put_answers(&line, c);
		end_line(&line);
	}
}

static void put_figures(FILE *out, const struct history *h) {
	const struct moment *now = history_second(h, 0);
	const struct moment *from[SPANS] = {history_second(h, 1), history_second(h, 10), history_second(h, 60),
										history_minute(h, HISTORY_MINUTES)};
	fprintf(out, "%-30s%10s%10s%10s%10s\n", "", "1 s", "10 s", "1 min", "1 h");
	for (const struct figure *f = figures; f->name; f++) {
		char text[64];
		snprintf(text, sizeof text, "%s%s%s", f->text, *f->unit ? ", " : "", f->unit);
		fprintf(out, "%-30s", text);
		for (unsigned i = 0; i < (f->instant ? 1 : SPANS); i++) {
			double figure = f->of(f, from[i], now) * f->scale;
			fprintf(out, figure && figure < 100 ? "%10.2f" : "%10.0f", figure);
		}
		putc('\n', out);
	}
}

/* Writes what is served. Words that do not fit go to the next line. */
static void put_about(FILE *out, const struct status_view *v) {
	size_t used = (size_t)fprintf(out, "gatling: %s", v->ending ? "ending," : "serving");
	for (const char *word = v->about; *word;) {
		size_t length = strcspn(word, " ");
		used = used + 1 + length > COLUMNS ? (size_t)fprintf(out, "\n   ") - 1 : used;
		used += (size_t)fprintf(out, " %.*s", (int)length, word);
		word += length + (word[length] == ' ');
	}
	fprintf(out, "\nup %" PRId64 ":%02" PRId64 ":%02" PRId64 "\n\n", v->up_s / 3600, v->up_s / 60 % 60, v->up_s % 60);
}

static void put_certificate(void *owner, const struct certified *c) {
	char date[16] = "none yet";
	const time_t until = (time_t)c->until_s;
	struct tm tm;
	if (until && gmtime_r(&until, &tm)) strftime(date, sizeof date, "%F", &tm);
	fprintf(owner, "certificate   %-50.50s %s\n", c->name, date);
	if (!c->good) fprintf(owner, "              ! %.*s\n", COLUMNS - 16, c->result);
}

static void put_upstreams(FILE *out) {
	const struct upstream_counts *u;
	for (unsigned n = 0; (u = upstream_counts_at(n)); n++) {
		struct text_line line = {.out = out};
		fprintf(out, "upstream      %.*s\n", COLUMNS - NAME_WIDTH, u->address);
		const uint64_t responses = upstream_counts_value(u, UPSTREAM_RESPONSES);
		for (unsigned i = 0; i < UPSTREAM_VALUES; i++) {
			const uint64_t value = upstream_counts_value(u, (enum upstream_value)i);
			if (i == UPSTREAM_NS && responses) put_item(&line, "", "mean ms", value / responses / 1000000);
			else if (i != UPSTREAM_NS && value) put_item(&line, "", upstream_value_row[i].which, value);
		}
		end_line(&line);
	}
}

void view_text(FILE *out, const struct status_view *v) {
	put_about(out, v);
	put_figures(out, v->history);
	putc('\n', out);
	put_values(out, &history_second(v->history, 0)->sum);
	put_upstreams(out);
	certified_each(v->certified, put_certificate, out);
}
