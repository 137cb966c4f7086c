/* test_bisect.c - a search finds the limit of a server, and blames it for nothing that the client did. */
#include "bench/httpbench/statistics/bisect.h"
#include "tests/unit/check.h"

static const double LIMIT = 780;

static enum bisect_result answer(double rate) { return rate <= LIMIT ? BISECT_MET : BISECT_MISSED; }

static void the_limit_is_found_from_below_and_from_above(void **state) {
	(void)state;
	for (double first = 10; first < 1e5; first *= 3) {
		struct bisect search = bisect_begin(first, 0.02);
		for (double rate; (rate = bisect_rate(&search)) > 0;) bisect_take(&search, answer(rate));
		assert_true(search.low <= LIMIT && search.low > 0.97 * LIMIT && !bisect_undecided(&search));
	}
}

static void what_shows_nothing_moves_no_bound_and_is_tried_again(void **state) {
	struct bisect search = bisect_begin(1000, 0.02);
	(void)state;
	for (unsigned n = 0; bisect_rate(&search) > 0; n++) {
		const double rate = bisect_rate(&search);
		bisect_take(&search, n % BISECT_REPEATS ? BISECT_UNKNOWN : answer(rate)); /* two of three show nothing */
		if (n % BISECT_REPEATS) assert_true(bisect_rate(&search) == rate);
	}
	assert_true(search.low <= LIMIT && search.low > 0.97 * LIMIT && !bisect_undecided(&search));
}

static void a_client_that_stays_the_limit_ends_the_search(void **state) {
	struct bisect search = bisect_begin(1000, 0.02);
	(void)state;
	bisect_take(&search, BISECT_MISSED);
	bisect_take(&search, BISECT_MET);
	const double low = search.low;
	for (int i = 0; i < BISECT_REPEATS; i++) {
		assert_true(bisect_rate(&search) > 0);
		bisect_take(&search, BISECT_UNKNOWN);
	}
	assert_true(bisect_rate(&search) == 0 && bisect_undecided(&search) && search.low == low && low == 500);
}

static void no_rate_may_meet_the_goal(void **state) {
	struct bisect search = bisect_begin(1000, 0.02);
	(void)state;
	while (bisect_rate(&search) > 0) bisect_take(&search, BISECT_MISSED);
	assert_true(search.low == 0 && !bisect_undecided(&search));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_limit_is_found_from_below_and_from_above),
									   cmocka_unit_test(what_shows_nothing_moves_no_bound_and_is_tried_again),
									   cmocka_unit_test(a_client_that_stays_the_limit_ends_the_search),
									   cmocka_unit_test(no_rate_may_meet_the_goal)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
