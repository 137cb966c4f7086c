/* limit_value.h - the values of limits, as --limit and the file _limits have them. Each function returns whether the
 * text is such a value; if not, *value stays as it is. */
#ifndef GATLING_CLIENT_LIMIT_VALUE_H
#define GATLING_CLIENT_LIMIT_VALUE_H

#include <stdbool.h>

#include "gatling/base/slice.h"
#include "gatling/client/address_table.h"

enum {
	LIMIT_RATE_MAX = 1000000,        /* requests in such a time, and in a burst */
	LIMIT_SECONDS_MAX = 24 * 60 * 60 /* of any time */
};

/* A number in digits, from least to most. */
bool limit_number(struct slice text, int64_t least, int64_t most, int *value);

/* Bytes, or KiB, MiB or GiB if K, M or G is appended, up to 1 TiB. */
bool limit_size(struct slice text, uint64_t *value);

/* REQUESTS[/UNIT][:BURST]: how many requests are allowed a second, or a minute (UNIT m) or hour (h), and how many may
 * come at once (default: REQUESTS). REQUESTS 0: no limit, with burst 0. */
bool limit_rate(struct slice text, struct address_rate *value);

#endif
