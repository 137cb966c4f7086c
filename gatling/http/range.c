/* range.c - see range.h. */
#include "gatling/http/range.h"

static const uint64_t LARGEST = UINT64_MAX / 2; /* what is larger counts as this */

/* Takes digits off the front; false when there is none. */
static bool take_number(struct slice *s, uint64_t *number) {
	size_t n = 0;
	*number = 0;
	for (; n < s->length && s->at[n] >= '0' && s->at[n] <= '9'; n++) {
		*number = *number * 10 + (uint64_t)(s->at[n] - '0');
		if (*number > LARGEST / 10) *number = LARGEST / 10;
	}
	s->at += n;
	s->length -= n;
	return n > 0;
}

/* One range-spec. false: bad syntax, or the end of an empty file, which no Content-Range can name. range->length is 0
 * when it cannot be satisfied. */
static bool parse_one(struct slice spec, uint64_t size, struct range *range) {
	uint64_t first, last;
	*range = (struct range){0};
	bool has_first = take_number(&spec, &first);
	if (!spec.length || spec.at[0] != '-') return false;
	spec.at++;
	spec.length--;
	bool has_last = take_number(&spec, &last);
	if (spec.length || (!has_first && !has_last) || (has_first && has_last && last < first)) return false;
	if (!has_first) { /* the last so many bytes */
		if (last && !size) return false;
		range->length = last < size ? last : size;
		range->first = size - range->length;
	} else if (first < size) {
		range->first = first;
		range->length = has_last && last < size ? last - first + 1 : size - first;
	}
	return true;
}

int range_parse(struct slice value, uint64_t size, struct range *range) {
	static const struct slice unit = SLICE("bytes=");
	if (value.length < unit.length || strncasecmp(value.at, unit.at, unit.length) != 0) return 0;
	struct slice list = {.at = value.at + unit.length, .length = value.length - unit.length};
	int specs = 0, satisfiable = 0;
	uint64_t sum = 0;
	for (struct slice spec; slice_next_element(&list, &spec); specs++) {
		if (specs == RANGES_MAX || !parse_one(spec, size, &range[satisfiable])) return 0;
		sum += range[satisfiable].length;
		satisfiable += range[satisfiable].length > 0;
	}
	if (!specs) return 0;
	if (!satisfiable) return -1;
	return satisfiable > 1 && sum > size ? 0 : satisfiable;
}
