/* range.c - see range.h. */
#include "gatling/http/range.h"

#include "gatling/base/slice.h"

/* Removes a decimal number from the front of s. Those above UINT64_MAX count as that. Returns false if there is none.
 */
static bool take_number(struct slice *s, uint64_t *number) {
	size_t n = 0;
	*number = 0;
	for (; n < s->length && text_is_digit(s->at[n]); n++) {
		const uint64_t digit = (uint64_t)(s->at[n] - '0');
		*number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
	}
	slice_drop(s, n);
	return n > 0;
}

/* Parses a range-spec. range->length is 0 if it cannot be satisfied. Returns false if the syntax is wrong, or if it is
 * one of an empty representation that is all of that: no Content-Range can describe it. */
static bool parse_one(struct slice spec, uint64_t size, struct range *range) {
	uint64_t first, last;
	*range = (struct range){0};
	bool has_first = take_number(&spec, &first);
	if (!text_skip(&spec, SLICE("-"))) return false;
	bool has_last = take_number(&spec, &last);
	if (spec.length || (!has_first && !has_last) || (has_first && has_last && last < first)) return false;
	if (!has_first) { /* a suffix of `last` bytes */
		if (last && !size) return false;
		range->length = last < size ? last : size;
		range->first = size - range->length;
	} else if (!first && !size) {
		return false;
	} else if (first < size) {
		range->first = first;
		range->length = has_last && last < size ? last - first + 1 : size - first;
	}
	return true;
}

int range_parse(struct slice value, uint64_t size, struct range *range) {
	static const struct slice unit = SLICE("bytes=");
	if (!slice_starts_nocase(value, unit)) return 0;
	struct slice list = slice_rest(value, unit.length);
	int specs = 0, satisfiable = 0;
	uint64_t left = size; /* together they have no more */
	for (struct slice spec; slice_next_element(&list, &spec); specs++) {
		if (specs == RANGES_MAX || !parse_one(spec, size, &range[satisfiable])) return 0;
		if (range[satisfiable].length > left) return 0;
		left -= range[satisfiable].length;
		satisfiable += range[satisfiable].length > 0;
	}
	return specs && !satisfiable ? -1 : satisfiable;
}
