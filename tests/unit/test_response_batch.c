/* test_response_batch.c - which batches are kept for reuse, and who gets them. */
#include "tests/unit/check.h"

#include "gatling/exchange/response_batch.h"

static const int64_t now;

static struct response_batch *taken(struct batch_pool *pool, enum batch_size size) {
	struct response_batch *x = NULL;
	assert_true(response_batch_take(pool, size, &x));
	return x;
}

/* Returns a batch that has sent so much in memory. */
static struct response_batch *used(struct batch_pool *pool, size_t length) {
	struct response_batch *x = taken(pool, BATCH_LARGE);
	char *data = calloc(1, length);
	assert_non_null(data);
	assert_int_equal(iob_addcopy(x->iob, data, length), 0);
	free(data);
	return x;
}

static void what_streams_hold_is_small_whatever_others_have_sent(void **state) {
	(void)state;
	enum { BATCHES = 64 };
	struct batch_pool pool = {.now_ns = &now};
	struct response_batch *x[BATCHES];
	for (int i = 0; i < BATCHES; i++) x[i] = used(&pool, i % 2 ? 10 * 1024 : 100);
	for (int i = 0; i < BATCHES; i++) response_batch_return(&pool, &x[i]);
	for (int i = 0; i < BATCHES; i++) {
		x[i] = taken(&pool, BATCH_SMALL);
		assert_in_range(response_batch_memory(x[i]), 1, BATCH_SMALL_MAX);
	}
	for (int i = 0; i < BATCHES; i++) response_batch_return(&pool, &x[i]);
	response_batch_free_spares(&pool);
}

static void connections_get_the_room_that_others_have_made(void **state) {
	(void)state;
	struct batch_pool pool = {.now_ns = &now};
	struct response_batch *large = used(&pool, 10 * 1024), *small = taken(&pool, BATCH_SMALL);
	const struct response_batch *const before = large, *const other = small;
	response_batch_return(&pool, &large);
	response_batch_return(&pool, &small);
	large = taken(&pool, BATCH_LARGE);
	assert_ptr_equal(large, before);
	small = taken(&pool, BATCH_LARGE);
	assert_ptr_equal(small, other); /* rather than a new one */
	response_batch_return(&pool, &large);
	response_batch_return(&pool, &small);
	response_batch_free_spares(&pool);
	assert_int_equal(pool.spares[BATCH_SMALL] + pool.spares[BATCH_LARGE], 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_streams_hold_is_small_whatever_others_have_sent),
		cmocka_unit_test(connections_get_the_room_that_others_have_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
