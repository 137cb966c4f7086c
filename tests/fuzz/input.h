/* input.h - the input of a fuzzer, of which steps take parts. */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stdint.h>

#include "gatling/base/slice.h"

static struct slice input_rest;

static inline void input_set(const uint8_t *data, size_t length) {
	input_rest = (struct slice){.at = (const char *)data, .length = length};
}

static inline bool input_left(void) { return input_rest.length; }

/* Returns the next octet; 0: there is none. */
static inline uint8_t octet(void) {
	if (!input_rest.length) return 0;
	const uint8_t first = (uint8_t)*input_rest.at;
	input_rest = slice_rest(input_rest, 1);
	return first;
}

/* Returns up to that many octets. */
static inline struct slice octets(size_t most) {
	const struct slice s = slice_first(input_rest, most < input_rest.length ? most : input_rest.length);
	input_rest = slice_rest(input_rest, s.length);
	return s;
}

#endif
