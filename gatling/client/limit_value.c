/* limit_value.c - see limit_value.h. */
#include "gatling/client/limit_value.h"

#include "gatling/base/slice.h"

#define SIZE_LIMIT (UINT64_C(1) << 40)

/* Takes digits off the front. Returns false if there are none, or the number is greater than SIZE_LIMIT. */
static bool take_number(struct slice *text, uint64_t *value) {
	uint64_t n = 0;
	size_t digits = 0;
	for (; digits < text->length && text_is_digit(text->at[digits]) && n <= SIZE_LIMIT; digits++)
		n = n * 10 + (unsigned)(text->at[digits] - '0');
	slice_drop(text, digits);
	*value = n;
	return digits && n <= SIZE_LIMIT;
}

bool limit_number(struct slice text, int64_t least, int64_t most, int *value) {
	uint64_t n;
	if (!take_number(&text, &n) || text.length || (int64_t)n < least || (int64_t)n > most) return false;
	*value = (int)n;
	return true;
}

bool limit_size(struct slice text, uint64_t *value) {
	static const char units[] = "KkMmGg";
	uint64_t n;
	unsigned shift = 0;
	if (!take_number(&text, &n)) return false;
	const char *unit = text.length == 1 && text.at[0] ? strchr(units, text.at[0]) : NULL;
	if (unit) shift = 10 * (unsigned)((unit - units) / 2 + 1);
	if ((text.length && !unit) || n > SIZE_LIMIT >> shift) return false;
	*value = n << shift;
	return true;
}

bool limit_rate(struct slice text, struct address_rate *value) {
	uint64_t requests, burst;
	int64_t seconds = 1;
	if (!take_number(&text, &requests) || requests > LIMIT_RATE_MAX) return false;
	burst = requests;
	if (text.length && *text.at == '/') {
		const char unit = text.length > 1 ? text.at[1] : '\0';
		if (unit != 's' && unit != 'm' && unit != 'h') return false;
		seconds = unit == 's' ? 1 : unit == 'm' ? 60 : 60 * 60;
		slice_drop(&text, 2);
	}
	if (text.length && *text.at == ':') {
		slice_drop(&text, 1);
		if (!take_number(&text, &burst) || !burst || burst > LIMIT_RATE_MAX) return false;
	}
	if (text.length) return false;
	*value = (struct address_rate){0};
	if (requests)
		*value =
			(struct address_rate){.interval_ns = seconds * 1000000000 / (int64_t)requests, .burst = (int64_t)burst};
	return true;
}
