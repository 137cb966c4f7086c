/* require.h - what has to be true, in a unit test or a fuzzer. */
#ifndef TESTS_QUIC_REQUIRE_H
#define TESTS_QUIC_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define require(holds)                                                                                                 \
	do {                                                                                                               \
		if (holds) break;                                                                                              \
		fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #holds);                                          \
		abort();                                                                                                       \
	} while (0)

#endif
