/* test_log.c - the access log: batches, a pipe that is not read, a full disk, and rotation. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/log/log.h"

/* Starts a log that writes to a descriptor, which remains the caller's. */
static struct log *start(int fd) {
	struct log_file file = {.fd = fd};
	return log_start(&file, false);
}

static void add(struct log_queue *l, const char *line, size_t length, int64_t now_ms) {
	log_line(l, (struct slice){.at = line, .length = length}, now_ms);
}

static void no_line_is_lost_when_the_log_stops(void **state) {
	(void)state;
	FILE *file = tmpfile();
	struct log *log = start(fileno(file));
	struct log_queue *a = log_queue_new(log), *b = log_queue_new(log);
	for (int i = 0; i < 5000; i++) {
		char line[32];
		int n = snprintf(line, sizeof line, "line %d", i);
		add(i % 2 ? a : b, line, (size_t)n, 0);
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
	struct log *log = start(fileno(file));
	struct log_queue *l = log_queue_new(log);
	assert_int_equal(log_due(l, 1000), -1);
	add(l, "x", 1, 1000);
	assert_int_equal(log_due(l, 1000), LOG_DELAY_MS);
	add(l, "y", 1, 1050);
	assert_int_equal(log_due(l, 1050), LOG_DELAY_MS - 50);
	assert_int_equal(log_due(l, 2000), 0);
	log_flush(l, 0);
	assert_int_equal(log_due(l, 2000), -1);
	log_stop(log);
	fclose(file);
}

static long lines, dropped;

/* Reads all lines and counts them; adds up the numbers of dropped lines. */
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

enum { MANY = 20000 }; /* lines: more than the pipe and two batches hold */

/* Starts a log on a pipe. MANY lines come before anybody reads; then another thread reads all of it. */
static struct log_queue *overfill(int flags, struct log **log, int *out, pthread_t *reader) {
	static int end[2];
	char line[100];
	lines = dropped = 0;
	assert_int_equal(pipe(end), 0);
	assert_int_equal(fcntl(end[1], F_SETFL, flags), 0);
	*log = start(end[1]);
	struct log_queue *l = log_queue_new(*log);
	memset(line, 'x', sizeof line);
	for (int i = 0; i < MANY; i++) add(l, line, sizeof line, 0); /* does not block */
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
	struct log_queue *l = overfill(0, &log, &out, &reader);
	/* room comes back, and the number of dropped lines is written without waiting for another line */
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
	assert_true(lines >= LOG_BATCH / 100); /* more than the pipe holds at once */
}

static void while_the_thread_is_busy_it_is_asked_again_after_the_delay(void **state) {
	(void)state;
	int end[2];
	assert_int_equal(pipe(end), 0);
	struct log *log = start(end[1]);
	struct log_queue *l = log_queue_new(log);
	char line[1000];
	memset(line, 'x', sizeof line);
	do add(l, line, sizeof line, 0);
	while (log_due(l, 0) != -1); /* half a batch has been handed over: more than the pipe holds */
	add(l, line, sizeof line, 500);
	log_flush(l, 500 + LOG_DELAY_MS);
	assert_int_equal(log_due(l, 500 + LOG_DELAY_MS), LOG_DELAY_MS);
	for (int i = 0; i < 1000; i++) add(l, line, sizeof line, 700); /* also if it is full */
	assert_true(log_due(l, 700) <= LOG_DELAY_MS);
	log_stop(log);
	close(end[0]);
}

static void a_reader_that_never_reads_does_not_hold_up_the_end(void **state) {
	(void)state;
	int end[2];
	assert_int_equal(pipe(end), 0);
	struct log *log = start(end[1]);
	struct log_queue *l = log_queue_new(log);
	char line[1000];
	memset(line, 'x', sizeof line);
	for (int i = 0; i < 1000; i++) add(l, line, sizeof line, 0);
	time_t started = time(NULL);
	log_stop(log);
	assert_true(time(NULL) - started <= LOG_STOP_S + 5);
	close(end[0]); /* the write of the thread that was left behind now fails; end[1] is its own */
}

/* --- files --- */

static char directory[] = "/tmp/gatling-log-XXXXXX";

static const char *in_directory(const char *name) {
	static char path[4][64];
	static unsigned next;
	char *at = path[next++ % 4];
	snprintf(at, sizeof *path, "%s/%s", directory, name);
	return at;
}

static int make_directory(void **state) {
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
	(void)state;
	static const char *const names[] = {"log", "old", "link"};
	for (size_t i = 0; i < COUNT(names); i++) (void)unlink(in_directory(names[i]));
	return rmdir(directory);
}

/* Returns the content of a file, valid until the next call; empty if there is no file. */
static const char *content(const char *path) {
	static char text[1 << 16];
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
	if (file) fclose(file);
	text[n] = '\0';
	return text;
}

static void until(const char *path, const char *text) {
	const struct timespec pause = {.tv_nsec = 1000000};
	for (int i = 0; i < 10000 && strcmp(content(path), text) != 0; i++) nanosleep(&pause, NULL);
	assert_string_equal(content(path), text);
}

static struct broker *broker; /* that of the open log */

/* Opens a log file as the server does. */
static int open_path(struct log_file *file, const char *path) {
	broker_free(broker);
	broker = broker_new();
	assert_non_null(broker);
	if (log_file_place(file, broker, path) == -1) return -1;
	assert_int_equal(broker_start(broker, true, NULL), 0);
	return log_file_open(file);
}

static struct log *open_log(bool json) {
	static char path[64]; /* needed as long as the log */
	struct log_file file;
	snprintf(path, sizeof path, "%s/log", directory);
	(void)unlink(path);
	assert_int_equal(open_path(&file, path), 0);
	struct log *log = log_start(&file, json);
	assert_non_null(log);
	return log;
}

static void say(struct log_queue *l, const char *line) {
	add(l, line, strlen(line), 0);
	log_flush(l, 0);
}

/* Waits until the thread has probably written everything. */
static void settle(struct log_queue *l) {
	const struct timespec pause = {.tv_nsec = 50000000};
	while (log_due(l, 0) != -1) log_flush(l, 0);
	nanosleep(&pause, NULL);
}

static void after_a_reopening_lines_go_to_a_new_file(void **state) {
	(void)state;
	struct stat st;
	struct log *log = open_log(false);
	struct log_queue *l = log_queue_new(log);
	say(l, "before");
	until(in_directory("log"), "before\n");
	assert_int_equal(rename(in_directory("log"), in_directory("old")), 0);
	say(l, "still there");
	until(in_directory("old"), "before\nstill there\n");
	log_reopen(log);
	settle(l);
	say(l, "behind");
	log_stop(log);
	assert_string_equal(content(in_directory("log")), "behind\n");
	assert_string_equal(content(in_directory("old")), "before\nstill there\n");
	assert_int_equal(stat(in_directory("log"), &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~BROKER_LOG_MODE, 0);
}

static void what_is_handed_over_before_a_reopening_goes_to_the_old_file(void **state) {
	(void)state;
	enum { LINES = 4000 };
	struct log *log = open_log(false);
	struct log_queue *l = log_queue_new(log);
	(void)unlink(in_directory("old"));
	for (int i = 0; i < LINES; i++) add(l, "a line", 6, 0);
	while (log_due(l, 0) != -1) log_flush(l, 0);
	assert_int_equal(rename(in_directory("log"), in_directory("old")), 0);
	log_reopen(log);
	log_stop(log);
	assert_int_equal(strlen(content(in_directory("old"))), LINES * 7);
	assert_string_equal(content(in_directory("log")), "");
}

static void a_path_that_cannot_be_opened_is_refused(void **state) {
	(void)state;
	struct log_file file;
	assert_int_equal(open_path(&file, in_directory("none/log")), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(open_path(&file, "/tmp/"), -1);
	assert_int_equal(open_path(&file, "/tmp/."), -1);
	assert_int_equal(symlink("elsewhere", in_directory("link")), 0);
	assert_int_equal(open_path(&file, in_directory("link")), -1);
	assert_int_equal(errno, ELOOP);
}

static void limit_file_size(rlim_t bytes) {
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_costs_lines_that_are_counted_and_glues_none_together(void **state) {
	(void)state;
	for (int json = 0; json < 2; json++) {
		struct log *log = open_log(json);
		struct log_queue *l = log_queue_new(log);
		say(l, "1st line");
		settle(l);
		limit_file_size(13); /* the second line is torn */
		say(l, "2nd line");
		settle(l);
		for (int i = 0; i < 3; i++) {
			add(l, "lost", 4, 0);
			say(l, "lost");
			settle(l);
		}
		assert_string_equal(content(in_directory("log")), "1st line\n2nd ");
		limit_file_size(RLIM_INFINITY);
		say(l, "3rd line");
		settle(l);
		until(in_directory("log"), json ? "1st line\n2nd line\n3rd line\n{\"dropped\":6}\n"
										: "1st line\n2nd line\n3rd line\n# 6 log lines dropped\n");
		say(l, "4th line");
		log_stop(log);
		assert_non_null(strstr(content(in_directory("log")), "\n4th line\n"));
	}
}

static void a_torn_line_is_not_continued_in_another_file(void **state) {
	(void)state;
	struct log *log = open_log(false);
	struct log_queue *l = log_queue_new(log);
	limit_file_size(4);
	say(l, "1st line");
	settle(l);
	log_reopen(log); /* reopens the same file */
	settle(l);
	limit_file_size(12);
	say(l, "2nd line");
	settle(l);
	assert_string_equal(content(in_directory("log")), "1st line\n2nd");
	assert_int_equal(rename(in_directory("log"), in_directory("old")), 0);
	log_reopen(log);
	settle(l);
	limit_file_size(RLIM_INFINITY);
	say(l, "3rd line");
	log_stop(log);
	assert_string_equal(content(in_directory("log")), "3rd line\n# 1 log lines dropped\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_line_is_lost_when_the_log_stops),
		cmocka_unit_test(a_line_is_due_after_the_delay),
		cmocka_unit_test(a_full_pipe_drops_lines_and_counts_them),
		cmocka_unit_test(what_is_dropped_last_is_counted_at_the_end),
		cmocka_unit_test(a_descriptor_that_does_not_block_loses_no_line_uncounted),
		cmocka_unit_test(while_the_thread_is_busy_it_is_asked_again_after_the_delay),
		cmocka_unit_test(a_reader_that_never_reads_does_not_hold_up_the_end),
		cmocka_unit_test(after_a_reopening_lines_go_to_a_new_file),
		cmocka_unit_test(what_is_handed_over_before_a_reopening_goes_to_the_old_file),
		cmocka_unit_test(a_path_that_cannot_be_opened_is_refused),
		cmocka_unit_test(a_full_disk_costs_lines_that_are_counted_and_glues_none_together),
		cmocka_unit_test(a_torn_line_is_not_continued_in_another_file),
	};
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
