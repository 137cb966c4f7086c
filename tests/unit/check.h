/* check.h - cmocka, with the headers that it requires. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gatling/base/slice.h"

static inline void check_slice(struct slice s, const char *text) {
	if (s.length != strlen(text) || memcmp(s.at, text, s.length) != 0)
		fail_msg("'%.*s' is not '%s'", (int)s.length, s.at, text);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

#endif
