/* test_reader.c - reads that nobody waits for any more, of io/reader.c. */
#define io_in_memory tested_in_memory
#define io_read_forget tested_read_forget
#define io_reader_collect tested_reader_collect
#define io_reader_free tested_reader_free
#include "io/reader.c" // NOLINT(bugprone-suspicious-include): its insides are tested

#include <time.h>

#include "tests/unit/check.h"

enum { FEW = 2000, MANY = 64000, ROUNDS = 3, DEARER_MAX = 8 /* a walk along the queue would be 32 times as dear */ };

static void ask(struct io_reader *reader, int fd) {
	struct request *r = malloc(sizeof *r);
	assert_true(r && table_grow(reader, fd));
	*r = (struct request){.fd = fd, .waits = true};
	reader->of[fd].request = r;
	push(&reader->asked, r);
}

/* Nanoseconds for each of n that go together, the last that has asked first. */
static double forget_all(int n) {
	struct io_reader *reader = calloc(1, sizeof *reader);
	struct timespec begun, ended;
	assert_non_null(reader);
	pthread_mutex_init(&reader->mutex, NULL);
	for (int fd = 0; fd < n; fd++) ask(reader, fd);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
	for (int fd = n; fd--;) io_read_forget(reader, fd);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	assert_null(reader->asked.first);
	free(reader->of);
	pthread_mutex_destroy(&reader->mutex);
	free(reader);
	return ((double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec)) / n;
}

static void to_be_forgotten_costs_the_same_however_many_wait(void **state) {
	(void)state;
	double few = 1e9, many = 1e9;
	for (int i = 0; i < ROUNDS; i++) {
		double of_few = forget_all(FEW), of_many = forget_all(MANY);
		if (of_few < few) few = of_few;
		if (of_many < many) many = of_many;
	}
	print_message("%.0f ns each of %d, %.0f ns each of %d\n", few, FEW, many, MANY);
	assert_true(many < DEARER_MAX * few);
}

static void who_is_forgotten_is_not_read_for_and_the_others_are(void **state) {
	(void)state;
	struct io_reader *reader = calloc(1, sizeof *reader);
	assert_non_null(reader);
	pthread_mutex_init(&reader->mutex, NULL);
	for (int fd = 0; fd < 5; fd++) ask(reader, fd);
	io_read_forget(reader, 0);
	io_read_forget(reader, 2);
	io_read_forget(reader, 4);
	io_read_forget(reader, 4);
	for (int fd = 1; fd < 5; fd += 2) {
		struct request *r = pop(&reader->asked);
		assert_int_equal(r->fd, fd);
		free(r);
	}
	assert_null(pop(&reader->asked));
	free(reader->of);
	pthread_mutex_destroy(&reader->mutex);
	free(reader);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_be_forgotten_costs_the_same_however_many_wait),
		cmocka_unit_test(who_is_forgotten_is_not_read_for_and_the_others_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
