/* view_json.c - see view.h: the page and programs read this. An object:
 *     "about", "state" ("serving" or "ending"), "uptime_seconds"
 *     "total"    the values of values.h by family: a number, or an object of numbers by label; and "answers" by status
 *     "workers"  an array of such objects, without the values of the kernel, each with "seconds" and
 *                "minutes": "requests" and "busy_processors"
 *     "quantiles" of the last ten seconds, in seconds: "first_byte" and "duration", each "p50", "p90", "p99", "p99.9"
 *     "upstreams" an array of objects: "address", and the values of upstream_counts.c
 *     "certificates" by ACME: an array of objects: "name", "until" (since the epoch; 0: there is none yet), "good"
 *                (the last attempt succeeded), and "result" (of that attempt, in words)
 *     "now", "seconds", "minutes"  the figures of figures.c: of the last second; of each second of the last two
 * minutes, and of each minute of the last hour, in arrays, the oldest first */
#include <inttypes.h>

#include "gatling/status/upstream_counts.h"
#include "gatling/status/view.h"

enum { QUANTILES_S = 10 };

static void put_string(FILE *out, const char *text) {
	putc('"', out);
	for (; *text; text++)
		if (*text < ' ' || *text > '~') putc('?', out);
		else fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
	putc('"', out);
}

static void put_values(FILE *out, const struct counters *c, unsigned count) {
	for (unsigned i = 0; i < count; i++) {
		const struct value_row *row = &value_row[i];
		bool begins = value_begins_family(i), ends = i + 1 == count || value_begins_family(i + 1);
		if (begins) fprintf(out, "%s\"%s\":%s", i ? "," : "", row->family, row->label ? "{" : "");
		if (row->label) fprintf(out, "%s\"%s\":", begins ? "" : ",", row->which);
		value_print(out, row, c->value[i]);
		if (ends && row->label) putc('}', out);
	}
}

static void put_answers(FILE *out, const struct counters *c) {
	bool any = false;
	fputs(",\"answers\":{", out);
	for (unsigned i = 0; i < STATUSES; i++) {
		if (!counters_answers(c, i)) continue;
		fprintf(out, "%s\"%u\":%" PRIu64, any ? "," : "", i + STATUS_FIRST, counters_answers(c, i));
		any = true;
	}
	putc('}', out);
}

static void put_quantiles(FILE *out, const char *name, const uint64_t *from, const uint64_t *to) {
	static const double share[] = {0.5, 0.9, 0.99, 0.999};
	fprintf(out, "\"%s\":{", name);
	for (unsigned i = 0; i < sizeof share / sizeof *share; i++)
		fprintf(out, "%s\"p%g\":%.6f", i ? "," : "", share[i] * 100, history_quantile(from, to, share[i]));
	putc('}', out);
}

/* A series of moments, by how many seconds or minutes ago they were. */
struct series {
	const char *name;
	unsigned count; /* intervals between the moments */
	const struct moment *(*moment)(const struct history *h, unsigned ago);
};

/* Writes the figures of the time between each two moments. */
static void put_series(FILE *out, const struct history *h, const struct series *s) {
	fprintf(out, ",\"%s\":{", s->name);
	for (const struct figure *f = figures; f->name; f++) {
		fprintf(out, "%s\"%s\":[", f > figures ? "," : "", f->name);
		for (unsigned ago = s->count; ago > 0; ago--)
			fprintf(out, "%s%.6g", ago < s->count ? "," : "", f->of(f, s->moment(h, ago), s->moment(h, ago - 1)));
		putc(']', out);
	}
	putc('}', out);
}

/* Writes the rates of a worker between each two moments. */
static void put_worker_series(FILE *out, const struct history *h, unsigned worker, const struct series *s) {
	fprintf(out, ",\"%s\":{\"requests\":[", s->name);
	for (unsigned ago = s->count; ago > 0; ago--)
		fprintf(out, "%s%.6g", ago < s->count ? "," : "",
				history_worker(h, worker, s->moment(h, ago), s->moment(h, ago - 1)).requests);
	fputs("],\"busy_processors\":[", out);
	for (unsigned ago = s->count; ago > 0; ago--)
		fprintf(out, "%s%.3g", ago < s->count ? "," : "",
				history_worker(h, worker, s->moment(h, ago), s->moment(h, ago - 1)).processors);
	fputs("]}", out);
}

struct json_array {
	FILE *out;
	bool any;
};

static void put_certificate(void *owner, const struct certified *c) {
	struct json_array *to = owner;
	fputs(to->any ? ",{\"name\":" : "{\"name\":", to->out);
	put_string(to->out, c->name);
	fprintf(to->out, ",\"until\":%" PRId64 ",\"good\":%s,\"result\":", c->until_s, c->good ? "true" : "false");
	put_string(to->out, c->result);
	putc('}', to->out);
	to->any = true;
}

static void put_upstreams(FILE *out) {
	const struct upstream_counts *u;
	fputs(",\"upstreams\":[", out);
	for (unsigned n = 0; (u = upstream_counts_at(n)); n++) {
		fputs(n ? ",{\"address\":" : "{\"address\":", out);
		put_string(out, u->address);
		for (unsigned i = 0; i < UPSTREAM_VALUES; i++) {
			fprintf(out, ",\"%s\":", upstream_value_row[i].which);
			value_print(out, &upstream_value_row[i], upstream_counts_value(u, (enum upstream_value)i));
		}
		putc('}', out);
	}
	putc(']', out);
}

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

void view_json(FILE *out, const struct status_view *v) {
	const struct history *h = v->history;
	const struct series seconds = {"seconds", least(h->seconds - 1, HISTORY_SECONDS), history_second};
	const struct series minutes = {"minutes", least(h->minutes - 1, HISTORY_MINUTES), history_minute};
	const struct moment *now = history_second(h, 0), *before = history_second(h, QUANTILES_S);
	fputs("{\"about\":", out);
	put_string(out, v->about);
	fprintf(out, ",\"state\":\"%s\",\"uptime_seconds\":%" PRId64 ",\"total\":{", v->ending ? "ending" : "serving",
			v->up_s);
	put_values(out, &now->sum, VALUES);
	put_answers(out, &now->sum);
	fputs("},\"workers\":[", out);
	for (unsigned i = 0; i < v->workers; i++) {
		struct counters c = {0};
		counters_sum(&c, v->worker[i]);
		fputs(i ? ",{" : "{", out);
		put_values(out, &c, WORKER_VALUES);
		put_worker_series(out, h, i, &seconds);
		put_worker_series(out, h, i, &minutes);
		putc('}', out);
	}
	putc(']', out);
	put_upstreams(out);
	fputs(",\"certificates\":[", out);
	certified_each(v->certified, put_certificate, &(struct json_array){.out = out});
	fputs("],\"quantiles\":{", out);
	put_quantiles(out, "first_byte", before->sum.first_byte, now->sum.first_byte);
	putc(',', out);
	put_quantiles(out, "duration", before->sum.duration, now->sum.duration);
	fputs("},\"now\":{", out);
	for (const struct figure *f = figures; f->name; f++)
		fprintf(out, "%s\"%s\":%.6g", f > figures ? "," : "", f->name, f->of(f, history_second(h, 1), now));
	putc('}', out);
	put_series(out, h, &seconds);
	put_series(out, h, &minutes);
	fputs("}\n", out);
}
