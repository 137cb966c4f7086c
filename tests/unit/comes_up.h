/* comes_up.h - waits until a loop hands out a descriptor. */
#ifndef TESTS_UNIT_COMES_UP_H
#define TESTS_UNIT_COMES_UP_H

#include <stdbool.h>

#include "io/io.h"
#include "tests/unit/check.h"

typedef int next_fn(io_loop *);

/* Returns whether next() returns fd within ms; other descriptors are ignored. */
static bool comes_up(io_loop *loop, next_fn *next, int fd, int ms) {
	bool found = false;
	assert_int_equal(io_wait(loop, 0), 0);
	const int64_t deadline = io_now(loop) + ms;
	for (;;) {
		for (int ready; (ready = next(loop)) != -1;) found |= ready == fd;
		if (found || io_now(loop) >= deadline) return found;
		assert_int_equal(io_wait(loop, (int)(deadline - io_now(loop))), 0);
	}
}

#endif
