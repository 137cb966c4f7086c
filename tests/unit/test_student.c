/* test_student.c - quantiles, compared with tables of Student's t distribution. */
#include <math.h>

#include "bench/httpbench/statistics/student.h"
#include "tests/unit/check.h"

static void quantiles_are_those_of_the_tables(void **state) {
	static const struct {
		double part, freedom, t;
	} table[] = {{0.975, 9, 2.262157},    {0.995, 5, 4.032143}, {0.75, 1, 1},          {0.95, 2, 2.919986},
				 {0.975, 1000, 1.962339}, {0.5, 3, 0},          {0.9995, 3, 12.923979}};
	(void)state;
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		assert_true(fabs(student_quantile(table[i].part, table[i].freedom) - table[i].t) < 2e-5);
		assert_true(fabs(student_below(table[i].t, table[i].freedom) - table[i].part) < 1e-6);
		assert_true(fabs(student_below(-table[i].t, table[i].freedom) - (1 - table[i].part)) < 1e-6);
	}
}

static void degrees_of_freedom_need_not_be_whole(void **state) {
	(void)state;
	const double between = student_quantile(0.975, 4.5);
	assert_true(between < student_quantile(0.975, 4) && between > student_quantile(0.975, 5));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_those_of_the_tables),
		cmocka_unit_test(degrees_of_freedom_need_not_be_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
