/* test_quic_libraries.c - what is said of the libraries of HTTP/3. */
#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <stdio.h>

#include "gatling/quic/libraries.h"
#include "tests/unit/check.h"

static void those_that_run_are_named_and_no_older_than_those_compiled_for(void **state) {
	(void)state;
	char text[QUIC_LIBRARIES_MAX], ngtcp2[32], nghttp3[32];
	quic_libraries(text);
	assert_int_equal(sscanf(text, "HTTP/3: ngtcp2 %31[^,], nghttp3 %31s", ngtcp2, nghttp3), 2);
	assert_non_null(ngtcp2_version(NGTCP2_VERSION_NUM));
	assert_non_null(nghttp3_version(NGHTTP3_VERSION_NUM));
	assert_string_equal(ngtcp2, ngtcp2_version(0)->version_str);
	assert_string_equal(nghttp3, nghttp3_version(0)->version_str);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_run_are_named_and_no_older_than_those_compiled_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
