/* test_priority.c - the values of Priority fields (RFC 9218, section 4). */
#include "gatling/streams/priority.h"
#include "tests/unit/check.h"

static void what_is_said_is_understood_and_the_rest_left_alone(void **state) {
	static const struct {
		const char *value;
		unsigned urgency;
		bool incremental;
	} cases[] = {
		{"", 3, false},
		{"u=0", 0, false},
		{"u=7", 7, false},
		{"i", 3, true},
		{"u=1, i", 1, true},
		{"i,u=5", 5, true},
		{"i=?1", 3, true},
		{"i, i=?0", 3, false},
		{"u=8", 3, false},
		{"u=-1", 3, false},
		{"u=12", 3, false},
		{"u=00", 3, false},
		{"u", 3, false},
		{"u=\"1\"", 3, false},
		{"x=1, u=2;y=3 ,z", 2, false},
		{"u=1, u=2", 2, false},
		{"u=1;a;b=2;  c=?0, i;d=tok", 1, true},
		{"u=1.0", 3, false},
		{"i=1", 3, false},
		{"u=?1", 3, false},
		{" u=2\t,\ti ", 2, true},
		{"*a.b-c_d=1, u=2", 2, false},
		/* no dictionary with items that clients send */
		{"i;d=:Zm8=:", 3, false},
		{"x=(1 \"a\" b;c=1);d, u=2", 3, false},
		{"x=\"a\\\"b,\", i", 3, false},
		{"x=\"a, u=7, i\"", 3, false},
		/* no dictionary */
		{"u=0,", 3, false},
		{"u=0,,i", 3, false},
		{",u=0", 3, false},
		{"i ;a", 3, false},
		{"u=0 i", 3, false},
		{"u=", 3, false},
		{"u=0, U=1", 3, false},
		{"u=0, x=(1", 3, false},
		{"u=0, x=\"", 3, false},
		{"u=0, x=:a", 3, false},
		{"u=0, x=?", 3, false},
		{"u=0, 1=2", 3, false},
		{"u=0, x=(1)2", 3, false},
		{"u=0\x01", 3, false},
		{"u=0, x=(1\"a\")", 3, false},
		{"u=0;", 3, false},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct priority p = PRIORITY_DEFAULT;
		priority_parse(slice_of(cases[i].value), &p);
		if (p.urgency != cases[i].urgency || p.incremental != cases[i].incremental)
			fail_msg("'%s' is understood as u=%u, i=%d", cases[i].value, p.urgency, p.incremental);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_said_is_understood_and_the_rest_left_alone)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
