/* early_hints.c - see early_hints.h. */
#include "gatling/site/rules/early_hints.h"

#include "gatling/base/slice.h"
#include "gatling/http/field_line.h"

/* Returns whether one of the links in the value of a field (RFC 8288, section 3) has such a relation. */
static bool is_hint(struct slice value) {
	static const struct slice relations[] = {SLICE("preload"), SLICE("modulepreload"), SLICE("preconnect")};
	for (size_t i = 0; i < value.length; i++) {
		struct slice rest = slice_rest(value, i);
		if (!slice_starts_nocase(rest, SLICE("rel="))) continue;
		slice_drop(&rest, strlen("rel="));
		if (rest.length && rest.at[0] == '"') slice_drop(&rest, 1);
		for (size_t k = 0; k < sizeof relations / sizeof *relations; k++)
			if (slice_starts_nocase(rest, relations[k])) return true;
	}
	return false;
}

size_t early_hints(const struct header_set *set, char *out) {
	char *at = out;
	for (unsigned i = 0; set && i < set->count; i++) {
		const struct header_item *item = &set->item[i];
		const size_t length = item->name.length + item->value.length + FIELD_LINE_MORE;
		if (item->detach || !header_named(item, "Link") || !is_hint(item->value)) continue;
		if ((size_t)(at - out) + length <= EARLY_HINTS_MAX) at = field_line_put(at, item->name, item->value);
	}
	return (size_t)(at - out);
}
