/* natural_order.c - see natural_order.h. */
#include "gatling/site/listing/natural_order.h"

#include "gatling/base/slice.h"

static unsigned char fold(char c) { return (unsigned char)text_lower(c); }

/* Takes a number off the front, and points *digits behind its leading zeros. Returns how many digits it has from
 * there. */
static size_t take_number(const char **at, const char **digits) {
	while (**at == '0') ++*at;
	*digits = *at;
	while (text_is_digit(**at)) ++*at;
	return (size_t)(*at - *digits);
}

static int compare_numbers(const char **a, const char **b) {
	const char *x, *y;
	size_t length = take_number(a, &x), other = take_number(b, &y);
	if (length != other) return length < other ? -1 : 1;
	return memcmp(x, y, length);
}

int natural_order_compare(const char *a, const char *b) {
	const char *x = a, *y = b;
	while (*x && *y) {
		int order = text_is_digit(*x) && text_is_digit(*y) ? compare_numbers(&x, &y) : fold(*x++) - fold(*y++);
		if (order) return order;
	}
	if (*x || *y) return *x ? 1 : -1;
	return strcmp(a, b);
}
