/* priority.c - see priority.h. */
#include "gatling/streams/priority.h"

#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

static bool is_of_key(char c) { return is_lower(c) || text_is_digit(c) || (c && strchr("_-.*", c)); }

/* Takes KEY or KEY=VALUE off the front: a value is a boolean, or what consists of the characters of a token, as numbers
 * do. Returns false if there is none. */
static bool take_item(struct slice *s, struct slice *item) {
	*item = *s;
	if (!s->length || (!is_lower(s->at[0]) && s->at[0] != '*')) return false;
	while (s->length && is_of_key(s->at[0])) slice_drop(s, 1);
	if (text_skip(s, SLICE("="))) {
		(void)text_skip(s, SLICE("?"));
		const size_t length = chars_span(*s, CHAR_TOKEN);
		if (!length) return false;
		slice_drop(s, length);
	}
	item->length -= s->length;
	return true;
}

void priority_parse(struct slice value, struct priority *priority) {
	struct priority found = *priority;
	struct slice item, parameter;
	do {
		value = slice_trim(value);
		if (!take_item(&value, &item)) return;
		while (text_skip(&value, SLICE(";"))) {
			value = slice_trim(value);
			if (!take_item(&value, &parameter)) return;
		}
		if (item.length == 3 && slice_starts(item, SLICE("u=")) && item.at[2] >= '0' && item.at[2] <= '7')
			found.urgency = (uint8_t)(item.at[2] - '0');
		if (slice_equal(item, SLICE("i")) || slice_equal(item, SLICE("i=?1"))) found.incremental = true;
		if (slice_equal(item, SLICE("i=?0"))) found.incremental = false;
		value = slice_trim(value);
	} while (text_skip(&value, SLICE(",")));
	if (!value.length) *priority = found;
}

/* --- streams that are not open yet --- */

enum { UNOPENED_MAX = 128 };

struct unopened_priorities {
	unsigned count;
	struct {
		uint64_t id;
		struct priority priority;
	} stream[UNOPENED_MAX];
};

size_t unopened_memory(const struct unopened_priorities *u) { return u ? sizeof *u : 0; }

bool unopened_keep(struct unopened_priorities **unopened, uint64_t id, struct priority priority, unsigned most) {
	struct unopened_priorities *u = *unopened;
	unsigned at = 0;
	if (!u && !(u = *unopened = calloc(1, sizeof *u))) return true;
	while (at < u->count && u->stream[at].id != id) at++;
	if (at == u->count && (at >= most || at == UNOPENED_MAX)) return false;
	u->count += at == u->count;
	u->stream[at].id = id;
	u->stream[at].priority = priority;
	return true;
}

void unopened_take(struct unopened_priorities **unopened, uint64_t id, struct priority *priority) {
	struct unopened_priorities *u = *unopened;
	unsigned kept = 0;
	if (!u) return;
	for (unsigned i = 0; i < u->count; i++) {
		if (u->stream[i].id == id) *priority = u->stream[i].priority;
		if (u->stream[i].id > id) u->stream[kept++] = u->stream[i];
	}
	u->count = kept;
	if (kept) return;
	free(u);
	*unopened = NULL;
}
