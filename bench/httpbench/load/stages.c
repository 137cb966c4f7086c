/* stages.c - see stages.h. */
#include "bench/httpbench/load/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double begin_of(const struct stages *s, unsigned number) { return number ? s->stage[number - 1].until_s : 0; }

/* Returns how many requests are due in a stage. */
static double due_in(const struct stages *s, unsigned number) {
	return (s->stage[number].until_s - begin_of(s, number)) * s->stage[number].per_s;
}

/* Parses a stage. Returns its end in the text, or NULL. */
static const char *parse_stage(struct stages *s, const char *text, double most) {
	char *end;
	const double seconds = strtod(text, &end);
	double unit = 1;
	if (*end == 'm') unit = 60;
	if (*end == 'h') unit = 3600;
	if (*end == 's' || *end == 'm' || *end == 'h') end++;
	if (end == text || *end != ':' || s->count == STAGES_MAX) return NULL;
	const double length_s = seconds * unit, before_s = begin_of(s, s->count);
	if (!(length_s >= 1 && before_s + length_s <= STAGES_SECONDS_MAX) || length_s != floor(length_s)) return NULL;
	const char *const rate = end + 1;
	struct stage *const stage = &s->stage[s->count];
	stage->per_s = strtod(rate, &end);
	if (end == rate || !(stage->per_s >= 0 && stage->per_s <= most)) return NULL;
	stage->until_s = before_s + length_s;
	stage->before = s->count ? s->stage[s->count - 1].before + due_in(s, s->count - 1) : 0;
	s->count++;
	return end;
}

int stages_parse(struct stages *s, const char *text, double most) {
	*s = (struct stages){0};
	do text = parse_stage(s, text, most);
	while (text && *text == ',' && text++);
	return text && !*text && stages_mean(s) > 0 ? 0 : -1;
}

void stages_divide(struct stages *s, unsigned among) {
	for (unsigned i = 0; i < s->count; i++) {
		s->stage[i].per_s /= among;
		s->stage[i].before /= among;
	}
}

double stages_when(const struct stages *s, double requests) {
	for (unsigned i = 0; i < s->count; i++)
		if (requests < s->stage[i].before + due_in(s, i))
			return begin_of(s, i) + (requests - s->stage[i].before) / s->stage[i].per_s;
	return INFINITY;
}

unsigned stages_at(const struct stages *s, double when_s) {
	unsigned i = 0;
	while (i + 1 < s->count && when_s >= s->stage[i].until_s) i++;
	return i;
}

double stages_mean(const struct stages *s) {
	if (!s->count) return 0;
	const struct stage *const last = &s->stage[s->count - 1];
	return (last->before + due_in(s, s->count - 1)) / last->until_s;
}
