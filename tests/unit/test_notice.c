/* test_notice.c - lines for the owner: how many are printed, and where they go. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "gatling/base/notice.h"

enum { LINES_MAX = 2 * NOTICE_BURST };
static char line[LINES_MAX][NOTICE_TEXT_MAX];
static enum notice_level level_of[LINES_MAX];
static unsigned lines;

static void keep(void *owner, enum notice_level level, const char *text) {
	(void)owner;
	assert_true(lines < LINES_MAX);
	level_of[lines] = level;
	snprintf(line[lines++], sizeof *line, "%s", text);
}

static int listen_to_lines(void **state) {
	(void)state;
	lines = 0;
	notice_to(keep, NULL);
	notice_echo(false);
	return 0;
}

/* Waits for the start of a second. */
static void begin_second(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	usleep((useconds_t)(1000000 - now.tv_nsec / 1000 + 1000));
}

static void lines_of_a_kind_are_limited_and_the_others_counted(void **state) {
	(void)state;
	begin_second();
	for (int i = 0; i < NOTICE_BURST + 7; i++) notice_line(LEVEL_WARNING, "file %d is missing", i);
	notice_line(LEVEL_INFO, "another kind");
	assert_int_equal(lines, NOTICE_BURST + 1);
	assert_string_equal(line[NOTICE_BURST], "another kind");
	assert_true(notice_tidy()); /* it is too early for the count */
	assert_int_equal(lines, NOTICE_BURST + 1);
	begin_second();
	assert_false(notice_tidy());
	assert_int_equal(lines, NOTICE_BURST + 2);
	assert_string_equal(line[NOTICE_BURST + 1], "left out 7 more that begin like \"file 100 is missing\"");
	assert_int_equal(level_of[NOTICE_BURST + 1], LEVEL_WARNING);
	notice_line(LEVEL_WARNING, "file %d is missing", 1);
	assert_int_equal(lines, NOTICE_BURST + 3);
	assert_false(notice_tidy());
}

static void what_was_left_out_is_said_with_the_next_line(void **state) {
	(void)state;
	begin_second();
	for (int i = 0; i < NOTICE_BURST + 1; i++) notice_cannot("open", "file", "it is not there");
	begin_second();
	notice_line(LEVEL_INFO, "the next");
	assert_int_equal(lines, NOTICE_BURST + 2);
	assert_non_null(strstr(line[NOTICE_BURST], "left out 1 more that begin like \"cannot open file: it"));
	assert_string_equal(line[NOTICE_BURST + 1], "the next");
}

static void a_line_stays_one_line(void **state) {
	(void)state;
	notice_line(LEVEL_ERROR, "a\nb%s", "\033[2J");
	notice_cannot("serve", "a\nb", "no");
	assert_string_equal(line[0], "a?b?[2J");
	assert_string_equal(line[1], "cannot serve a?b: no");
}

static void less_grave_lines_can_be_left_out(void **state) {
	(void)state;
	notice_threshold(LEVEL_WARNING);
	notice_line(LEVEL_NOTICE, "one");
	assert_true(notice(1, "two"));
	notice_line(LEVEL_ERROR, "three");
	notice_threshold(LEVEL_INFO);
	assert_int_equal(lines, 2);
	assert_string_equal(line[0], "two");
	assert_string_equal(line[1], "three");
}

static void what_was_said_is_not_repeated_until_it_changes(void **state) {
	(void)state;
	assert_true(notice(1, "%s is closed", "a"));
	assert_false(notice(1, "%s is closed", "a"));
	assert_true(notice(1, "%s is closed", "b"));
	assert_true(notice(2, "%s is closed", "a"));
	assert_int_equal(lines, 3);
}

static void what_was_left_out_is_said_when_it_comes_up_again(void **state) {
	(void)state;
	begin_second();
	for (uint64_t i = 0; i < NOTICE_BURST; i++) assert_true(notice(i, "mistake %d", (int)i));
	assert_false(notice(1, "mistake %d", NOTICE_BURST));
	begin_second();
	assert_true(notice(1, "mistake %d", NOTICE_BURST));
	assert_int_equal(lines, NOTICE_BURST + 2);
}

/* Reads all there is in a pipe. Returns its length. */
static size_t drain(int fd, char *text, size_t size) {
	size_t length = 0;
	for (ssize_t n; (n = read(fd, text + length, size - 1 - length)) > 0;) length += (size_t)n;
	text[length] = '\0';
	return length;
}

#define FIRST "gatling: left out 3 more that begin like \"there is no room\"\n"
#define SECOND "gatling: left out 1 more that begin like \"nor for this\"\n"

static void while_clients_are_served_nobody_waits_for_stderr(void **state) {
	(void)state;
	static char text[1024 * 1024];
	int pipe_end[2], own = dup(STDERR_FILENO);
	assert_int_equal(pipe(pipe_end), 0);
	assert_int_equal(fcntl(pipe_end[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_not_equal(dup2(pipe_end[1], STDERR_FILENO), -1);
	notice_to(NULL, NULL);
	notice_serving();
	begin_second();
	assert_true(notice(1, "a first line of its kind"));
	assert_int_equal(fcntl(pipe_end[1], F_SETFL, O_NONBLOCK), 0);
	while (write(pipe_end[1], text, sizeof text) > 0) {}
	assert_int_equal(fcntl(pipe_end[1], F_SETFL, 0), 0);
	for (int i = 0; i < 3; i++) assert_false(notice(2, "there is no room"));
	assert_false(notice(2, "nor for this"));
	assert_true(notice_tidy());
	begin_second();
	assert_int_equal(read(pipe_end[0], text, PIPE_BUF), PIPE_BUF);
	assert_true(notice_tidy()); /* there is room for one line */
	assert_true(drain(pipe_end[0], text, sizeof text) > 0);
	const bool first = memmem(text, sizeof text, FIRST, strlen(FIRST));
	assert_true(first || memmem(text, sizeof text, SECOND, strlen(SECOND)));
	assert_false(notice_tidy());
	(void)drain(pipe_end[0], text, sizeof text);
	assert_string_equal(text, first ? SECOND : FIRST);
	assert_true(notice(2, "there is no room"));
	(void)drain(pipe_end[0], text, sizeof text);
	(void)dup2(own, STDERR_FILENO);
	close(own);
	close(pipe_end[0]);
	close(pipe_end[1]);
	assert_string_equal(text, "gatling: there is no room\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lines_of_a_kind_are_limited_and_the_others_counted, listen_to_lines),
		cmocka_unit_test_setup(what_was_left_out_is_said_with_the_next_line, listen_to_lines),
		cmocka_unit_test_setup(a_line_stays_one_line, listen_to_lines),
		cmocka_unit_test_setup(less_grave_lines_can_be_left_out, listen_to_lines),
		cmocka_unit_test_setup(what_was_said_is_not_repeated_until_it_changes, listen_to_lines),
		cmocka_unit_test_setup(what_was_left_out_is_said_when_it_comes_up_again, listen_to_lines),
		cmocka_unit_test(while_clients_are_served_nobody_waits_for_stderr),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
