/* test_log.c - the access log: the form of a line, batches, and what happens when nobody reads. */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "gatling/access.h"
#include "gatling/log.h"

static struct peer peer(const char *text) {
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) return peer_of((struct sockaddr *)&v4);
	assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
	return peer_of((struct sockaddr *)&v6);
}

static void lines_are_in_the_common_log_format(void **state) {
	(void)state;
	static const struct {
		const char *peer, *request, *line;
	} cases[] = {
		{"192.0.2.1", "GET / HTTP/1.1", "192.0.2.1 - - [D] \"GET / HTTP/1.1\" 200 12"},
		{"::ffff:192.0.2.1", "GET / HTTP/1.1", "192.0.2.1 - - [D] \"GET / HTTP/1.1\" 200 12"},
		{"2001:db8::1", "x", "2001:db8::1 - - [D] \"x\" 200 12"},
		{"192.0.2.1", "a\"b\\c\n\x7f\xe9", "192.0.2.1 - - [D] \"a\\x22b\\x5cc\\x0a\\x7f\\xe9\" 200 12"},
	};
	static char line[ACCESS_LINE_MAX];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct peer p = peer(cases[i].peer);
		size_t n = access_format(line, &p, "D", slice_of(cases[i].request), 200, 12);
		check_slice((struct slice){.at = line, .length = n}, cases[i].line);
	}
	struct peer none = {0};
	size_t n = access_format(line, &none, "D", slice_of("x"), 304, 0);
	check_slice((struct slice){.at = line, .length = n}, "unix: - - [D] \"x\" 304 -");
}

static void of_an_endless_request_line_the_start_is_logged(void **state) {
	(void)state;
	static char line[ACCESS_LINE_MAX], request[10 * ACCESS_REQUEST_MAX];
	struct peer p = peer("2001:db8:1111:2222:3333:4444:5555:6666");
	memset(request, '\xe9', sizeof request);
	size_t n = access_format(line, &p, "21/Nov/2026:07:17:28 +0000",
							 (struct slice){.at = request, .length = sizeof request}, 414, UINT64_MAX);
	assert_true(n > 4 * ACCESS_REQUEST_MAX && n < ACCESS_LINE_MAX);
	assert_memory_equal(line + n - 26, "\" 414 18446744073709551615", 26);
}

static void no_line_is_lost_when_the_log_stops(void **state) {
	(void)state;
	FILE *file = tmpfile();
	struct log *log = log_start(fileno(file));
	struct log_lines *a = log_lines_new(log), *b = log_lines_new(log);
	for (int i = 0; i < 5000; i++) {
		char line[32];
		int n = snprintf(line, sizeof line, "line %d", i);
		log_line(i % 2 ? a : b, line, (size_t)n, 0);
	}
	log_stop(log);
	char line[64];
	int lines = 0, last[2] = {-1, -1};
	rewind(file);
	while (fgets(line, sizeof line, file)) {
		int i = -1;
		assert_int_equal(sscanf(line, "line %d", &i), 1);
		assert_true(i > last[i % 2]);
		last[i % 2] = i;
		lines++;
	}
	assert_int_equal(lines, 5000);
	fclose(file);
}

static void a_line_is_due_after_the_delay(void **state) {
	(void)state;
	FILE *file = tmpfile();
	struct log *log = log_start(fileno(file));
	struct log_lines *l = log_lines_new(log);
	assert_int_equal(log_due(l, 1000), -1);
	log_line(l, "x", 1, 1000);
	assert_int_equal(log_due(l, 1000), LOG_DELAY_MS);
	log_line(l, "y", 1, 1050);
	assert_int_equal(log_due(l, 1050), LOG_DELAY_MS - 50);
	assert_int_equal(log_due(l, 2000), 0);
	log_flush(l, 0);
	assert_int_equal(log_due(l, 2000), -1);
	log_stop(log);
	fclose(file);
}

static long lines, dropped;

/* Reads all of the lines and counts; the note about dropped ones is added up. */
static void *read_all(void *argument) {
	const int *fd = argument;
	FILE *in = fdopen(*fd, "r");
	char line[256];
	while (fgets(line, sizeof line, in)) {
		long n;
		if (sscanf(line, "# %ld log lines dropped", &n) == 1) dropped += n;
		else lines++;
	}
	fclose(in);
	return NULL;
}

enum { MANY = 20000 }; /* lines: more than the pipe and both batches hold */

/* Starts a log on a pipe, in which MANY lines come before anybody reads; then all is read in another thread. */
static struct log_lines *overfill(int flags, struct log **log, int *out, pthread_t *reader) {
	static int end[2];
	char line[100];
	lines = dropped = 0;
	assert_int_equal(pipe(end), 0);
	assert_int_equal(fcntl(end[1], F_SETFL, flags), 0);
	*log = log_start(end[1]);
	struct log_lines *l = log_lines_new(*log);
	memset(line, 'x', sizeof line);
	for (int i = 0; i < MANY; i++) log_line(l, line, sizeof line, 0); /* returns all the same */
	assert_int_equal(pthread_create(reader, NULL, read_all, &end[0]), 0);
	*out = end[1];
	return l;
}

static void check_all_are_told(struct log *log, int out, pthread_t reader) {
	log_stop(log);
	close(out);
	pthread_join(reader, NULL);
	assert_true(dropped > 0);
	assert_int_equal(lines + dropped, MANY);
}

static void a_full_pipe_drops_lines_and_counts_them(void **state) {
	(void)state;
	struct log *log;
	int out;
	pthread_t reader;
	struct log_lines *l = overfill(0, &log, &out, &reader);
	/* room comes back, and what is missing is said without waiting for another line */
	for (bool flushed = false; !flushed; flushed = log_due(l, 0) == -1) log_flush(l, 0);
	check_all_are_told(log, out, reader);
}

static void what_is_dropped_last_is_counted_at_the_end(void **state) {
	(void)state;
	struct log *log;
	int out;
	pthread_t reader;
	(void)overfill(0, &log, &out, &reader);
	check_all_are_told(log, out, reader);
}

static void a_descriptor_that_does_not_block_loses_no_line_uncounted(void **state) {
	(void)state;
	struct log *log;
	int out;
	pthread_t reader;
	(void)overfill(O_NONBLOCK, &log, &out, &reader);
	check_all_are_told(log, out, reader);
	assert_true(lines >= LOG_BATCH / 100); /* more than the pipe took at once */
}

static void while_the_thread_is_busy_it_is_asked_again_after_the_delay(void **state) {
	(void)state;
	int end[2];
	assert_int_equal(pipe(end), 0);
	struct log *log = log_start(end[1]);
	struct log_lines *l = log_lines_new(log);
	char line[1000];
	memset(line, 'x', sizeof line);
	do log_line(l, line, sizeof line, 0);
	while (log_due(l, 0) != -1); /* half a batch is handed over: more than the pipe holds */
	log_line(l, line, sizeof line, 500);
	log_flush(l, 500 + LOG_DELAY_MS);
	assert_int_equal(log_due(l, 500 + LOG_DELAY_MS), LOG_DELAY_MS);
	for (int i = 0; i < 1000; i++) log_line(l, line, sizeof line, 700); /* also when it is full */
	assert_true(log_due(l, 700) <= LOG_DELAY_MS);
	log_stop(log);
	close(end[0]);
}

static void a_reader_that_never_reads_does_not_hold_up_the_end(void **state) {
	(void)state;
	int end[2];
	assert_int_equal(pipe(end), 0);
	struct log *log = log_start(end[1]);
	struct log_lines *l = log_lines_new(log);
	char line[1000];
	memset(line, 'x', sizeof line);
	for (int i = 0; i < 1000; i++) log_line(l, line, sizeof line, 0);
	time_t started = time(NULL);
	log_stop(log);
	assert_true(time(NULL) - started <= LOG_STOP_S + 5);
	close(end[0]); /* now the write of the thread that was left behind fails; end[1] is its own */
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_in_the_common_log_format),
		cmocka_unit_test(of_an_endless_request_line_the_start_is_logged),
		cmocka_unit_test(no_line_is_lost_when_the_log_stops),
		cmocka_unit_test(a_line_is_due_after_the_delay),
		cmocka_unit_test(a_full_pipe_drops_lines_and_counts_them),
		cmocka_unit_test(what_is_dropped_last_is_counted_at_the_end),
		cmocka_unit_test(a_descriptor_that_does_not_block_loses_no_line_uncounted),
		cmocka_unit_test(while_the_thread_is_busy_it_is_asked_again_after_the_delay),
		cmocka_unit_test(a_reader_that_never_reads_does_not_hold_up_the_end),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
