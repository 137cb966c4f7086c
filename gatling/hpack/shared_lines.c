/* shared_lines.c - see shared_lines.h. */
#include "gatling/hpack/shared_lines.h"

#include <stdlib.h>

enum {
	SLOTS = 512,         /* a power of two, more than SHARED_LINES_MAX, so that one is always free */
	STATIC_ENTRIES = 61, /* the dynamic table begins behind them (section 2.3.3) */
	INDEXED = 0x80       /* an indexed header field (section 6.1) */
};

/* A line as text, and as a literal header field with incremental indexing behind it (section 6.2.1). */
struct shared_line {
	char *text;
	uint16_t length, encoded;
};

struct shared_lines {
	unsigned count;
	struct shared_line line[SHARED_LINES_MAX]; /* their numbers begin with 1 */
	uint8_t slot[SLOTS];                       /* numbers, by the hash of the text; 0: none */
};

struct shared_lines *shared_lines_new(void) {
	return calloc(1, sizeof(struct shared_lines));
}

void shared_lines_free(struct shared_lines *t) {
	for (unsigned i = 0; t && i < t->count; i++) free(t->line[i].text);
	free(t);
}

static struct slice text_of(const struct shared_line *l) { return (struct slice){.at = l->text, .length = l->length}; }

/* Returns where the number of a line is, or would be. */
static size_t slot_of(const struct shared_lines *t, struct slice text) {
	size_t i = slice_hash(0, text) % SLOTS;
	while (t->slot[i] && !slice_equal(text_of(&t->line[t->slot[i] - 1]), text)) i = (i + 1) % SLOTS;
	return i;
}

/* Adds a line. Returns its number, or 0 if it is not shared. */
static uint8_t add(struct shared_lines *t, struct slice text, size_t slot) {
	if (t->count == SHARED_LINES_MAX || text.length > SHARED_LINE_MAX || !hpack_is_common(text)) return 0;
	char *copy = malloc(text.length + HPACK_BOUND(text.length));
	if (!copy) return 0;
	const char *encoded = text_copy(copy, text), *end = hpack_line(copy + text.length, text, true);
	t->line[t->count++] =
		(struct shared_line){.text = copy, .length = (uint16_t)text.length, .encoded = (uint16_t)(end - encoded)};
	return t->slot[slot] = (uint8_t)t->count;
}

void ready_block_add(struct ready_block *b, struct shared_lines *t, struct slice text, char *out) {
	if (!b->rest.at) b->rest.at = out;
	char *const rest = out + b->rest.length, *end = rest;
	while (text.length) {
		const struct slice line = hpack_next(&text);
		const size_t slot = slot_of(t, line);
		const uint8_t number = t->slot[slot] ? t->slot[slot] : add(t, line, slot);
		if (number && b->shared < READY_BLOCK_LINES) {
			b->line[b->shared++] = number;
			b->longest += t->line[number - 1].encoded + 1U; /* without a table, a name's index may be longer by one */
		} else {
			end = hpack_line(end, line, false);
		}
	}
	b->rest.length += (size_t)(end - rest);
	b->longest += (size_t)(end - rest);
}

static char *put_shared(char *at, unsigned number, const struct shared_lines *t, struct dynamic_lines *d) {
	const struct shared_line *l = &t->line[number - 1];
	const uint8_t *known = d->off ? NULL : memchr(d->line, (int)number, DYNAMIC_LINES);
	if (known) {
		const unsigned age = (d->next - 1U - (unsigned)(known - d->line)) % DYNAMIC_LINES;
		*at++ = (char)(INDEXED | (STATIC_ENTRIES + 1 + age));
		return at;
	}
	if (d->off) return hpack_line(at, text_of(l), false);
	d->line[d->next] = (uint8_t)number;
	d->next = (d->next + 1) % DYNAMIC_LINES;
	return text_copy(at, (struct slice){.at = l->text + l->length, .length = l->encoded});
}

char *ready_block_put(char *at, const struct ready_block *b, const struct shared_lines *t, struct dynamic_lines *d) {
	for (unsigned i = 0; i < b->shared; i++) at = put_shared(at, b->line[i], t, d);
	return text_copy(at, b->rest);
}

char *shared_lines_put(char *at, struct slice text, const struct shared_lines *t, struct dynamic_lines *d) {
	while (text.length) {
		const struct slice line = hpack_next(&text);
		const uint8_t number = t->slot[slot_of(t, line)];
		at = number ? put_shared(at, number, t, d) : hpack_line(at, line, false);
	}
	return at;
}
