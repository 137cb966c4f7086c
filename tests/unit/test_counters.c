/* test_counters.c - how times are counted and sampled, how long the history is, and where values are shown. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gatling/status/view.h"

static void test_each_time_is_in_the_interval_that_ends_above_it(void **state) {
	(void)state;
	static struct counters own;
	counters = &own;
	uint64_t before = 0;
	for (unsigned i = 0; i + 1 < TIMES; i++) {
		assert_true(i == 0 || times_limit(i) > before);
		/* wider by at most an eighth of the limit, after the first */
		assert_true(i == 0 || times_limit(i) - before <= before / 8 + 1);
		count_duration((int64_t)times_limit(i), 1);
		assert_int_equal(own.duration[i], 1);
		count_duration((int64_t)times_limit(i) + 1, 1);
		assert_int_equal(own.duration[i + 1], 1);
		own.duration[i + 1] = 0;
		before = times_limit(i);
	}
	assert_int_equal(own.first_byte_ns, 0);
	count_first_byte(-5, 1); /* a clock that was set back */
	assert_int_equal(own.first_byte[0], 1);
	count_first_byte(INT64_MAX, 1);
	assert_int_equal(own.first_byte[TIMES - 1], 1);
}

static void test_a_quantile_is_not_below_what_was_counted(void **state) {
	(void)state;
	static struct counters own;
	counters = &own;
	assert_int_equal(times_quantile(own.duration, 0.5), 0);
	for (int i = 0; i < 99; i++) count_duration(1000000, 1);
	count_duration(500000000, 1);
	assert_in_range(times_quantile(own.duration, 0.5), 1000000, 1125000);
	assert_in_range(times_quantile(own.duration, 0.99), 1000000, 1125000);
	assert_in_range(times_quantile(own.duration, 0.999), 500000000, 562500000);
}

static void test_a_status_of_any_three_digits_is_one_of_its_protocol(void **state) {
	(void)state;
	static struct counters own;
	counters = &own;
	for (int status = 100; status < 1000; status++) count_answer(COUNT_HTTP1, status);
	assert_int_equal(counters_value(&own, COUNT_HTTP1), 900);
	assert_int_equal(counters_value(&own, COUNT_HTTP2), 0);
	for (int status = 100; status < 1000; status++) count_answer(COUNT_HTTP2, status);
	assert_int_equal(counters_answers(&own, 999 - STATUS_FIRST), 2);
	for (unsigned i = 0; i < TIMES; i++) assert_true(own.first_byte[i] == 0 && own.duration[i] == 0);
}

static void test_samples_stand_for_all_answers(void **state) {
	(void)state;
	static struct counters own;
	counters = &own;
	unsigned sampled = 0, weight = 0;
	for (int i = 0; i < SAMPLED_AT_FIRST + 10 * SAMPLE_WEIGHT; i++) {
		unsigned n = counters_sample();
		assert_true(i >= SAMPLED_AT_FIRST || n == 1);
		sampled += n != 0;
		weight += n;
	}
	assert_int_equal(sampled, SAMPLED_AT_FIRST + 10);
	assert_int_equal(weight, SAMPLED_AT_FIRST + 10 * SAMPLE_WEIGHT);
}

static void test_the_history_goes_back_two_minutes_and_an_hour(void **state) {
	(void)state;
	static struct history h;
	struct counters sum = {0}, own = {0};
	const struct counters *const worker[] = {&sum, &own};
	assert_int_equal(history_open(&h, 2), 0);
	assert_null(history_second(&h, 0));
	for (int s = 0; s < 2 * 3600; s++) {
		sum.value[COUNT_HTTP1] = (uint64_t)s * 10;
		own.answers[1][200 - STATUS_FIRST] = (uint64_t)s * 3;
		history_add(&h, s * INT64_C(1000), &sum, worker);
		const struct moment *first = history_second(&h, 1000);
		assert_int_equal(first->ms, (s > HISTORY_SECONDS ? s - HISTORY_SECONDS : 0) * INT64_C(1000));
	}
	assert_int_equal(history_second(&h, 0)->ms, 7199000);
	assert_int_equal(history_second(&h, 0)->ms - history_second(&h, 10)->ms, 10000);
	assert_int_equal(history_minute(&h, 0)->ms - history_minute(&h, 1000)->ms, HISTORY_MINUTES * INT64_C(60000));
	assert_true(history_rate(history_second(&h, 7), history_second(&h, 0), COUNT_HTTP1) == 10);
	assert_true(history_rate(history_second(&h, 0), history_second(&h, 0), COUNT_HTTP1) == 0);
	for (unsigned ago = 0; ago < HISTORY_SECONDS; ago++)
		assert_true(history_worker(&h, 1, history_second(&h, ago + 1), history_second(&h, ago)).requests == 3);
	for (unsigned ago = 0; ago < HISTORY_MINUTES; ago++)
		assert_true(history_worker(&h, 1, history_minute(&h, ago + 1), history_minute(&h, ago)).requests == 3);
	assert_true(history_worker(&h, 0, history_second(&h, 1), history_second(&h, 0)).requests == 0);
	assert_true(history_worker(&h, 1, history_second(&h, 0), history_second(&h, 0)).requests == 0);
	history_close(&h);
}

/* Returns what a view writes of two moments, between which each value grew by 1. */
static char *written(void (*write)(FILE *out, const struct status_view *view)) {
	static struct counters own;
	static struct history h;
	const struct counters *const worker[] = {&own};
	struct certified_list *none = certified_new();
	struct counters sum = {0};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	assert_int_equal(history_open(&h, 1), 0);
	history_add(&h, 0, &sum, worker);
	for (unsigned i = 0; i < VALUES; i++) sum.value[i] = 1;
	history_add(&h, 1000, &sum, worker);
	write(out, &(struct status_view){.about = "", .history = &h, .worker = worker, .workers = 1, .certified = none});
	assert_int_equal(fclose(out), 0);
	history_close(&h);
	certified_free(none);
	return text;
}

static void test_each_value_is_shown_where_its_row_says(void **state) {
	(void)state;
	char *text = written(view_text), *page = written(view_page), *json = written(view_json);
	for (unsigned i = 0; i < VALUES; i++) {
		const struct value_row *row = &value_row[i];
		const struct place *in_text = &row->place[IN_TEXT], *in_page = &row->place[IN_PAGE];
		char name[128];
		const char *line = in_text->in ? strstr(text, in_text->in) : text;
		assert_true(line && (!in_text->in || strstr(line, in_text->words)));
		snprintf(name, sizeof name, "['%s', '%s', ", in_page->in ? in_page->words : "", row->family);
		assert_true(!in_page->in || strstr(page, name));
		snprintf(name, sizeof name, "\"%s\":", in_page->part ? in_page->part : row->family);
		assert_non_null(strstr(json, name));
		assert_true(row->help || !value_begins_family(i));
	}
	for (const struct figure *f = figures; f->name; f++)
		assert_true(strstr(text, f->text) && strstr(json, f->name) && (!f->curve || strstr(page, f->title)));
	free(text);
	free(page);
	free(json);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_time_is_in_the_interval_that_ends_above_it),
									   cmocka_unit_test(test_a_quantile_is_not_below_what_was_counted),
									   cmocka_unit_test(test_a_status_of_any_three_digits_is_one_of_its_protocol),
									   cmocka_unit_test(test_samples_stand_for_all_answers),
									   cmocka_unit_test(test_the_history_goes_back_two_minutes_and_an_hour),
									   cmocka_unit_test(test_each_value_is_shown_where_its_row_says)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
