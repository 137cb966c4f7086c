/* test_broker.c - the broker process opens what was named before it started, and nothing else. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/file_version.h"
#include "gatling/broker/broker.h"

static char directory[] = "/tmp/gatling-test-XXXXXX";
static struct broker *broker;
static int file, pems, pairs, log_place;

/* As in a container. */
int unshare(int flags) {
	(void)flags;
	errno = EPERM;
	return -1;
}

static void make(const char *name, const char *text) {
	char path[256];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static int set_up(void **state) {
	char path[256];
	static char cert[256], log[256];
	const char *name;
	(void)state;
	if (!mkdtemp(directory)) return -1;
	snprintf(path, sizeof path, "%s/site", directory);
	mkdir(path, 0755);
	const char *names[] = {"cert", "certx", "a.pem", "a.key", "site/fullchain.pem", "site/privkey.pem", "site/other"};
	for (size_t i = 0; i < COUNT(names); i++) make(names[i], names[i]);
	snprintf(path, sizeof path, "%s/away.pem", directory);
	if (symlink("/etc/hostname", path) == -1) return -1;
	broker = broker_new();
	snprintf(cert, sizeof cert, "%s/cert", directory);
	snprintf(log, sizeof log, "%s/log", directory);
	file = broker_add(broker, cert, BROKER_FILE, &name);
	if (strcmp(name, "cert") != 0) return -1;
	pems = broker_add(broker, directory, BROKER_PEMS, &name);
	pairs = broker_add(broker, directory, BROKER_PAIRS, &name);
	log_place = broker_add(broker, log, BROKER_LOG, &name);
	return broker_start(broker, true, NULL);
}

static int tear_down(void **state) {
	char command[256];
	(void)state;
	broker_free(broker);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

static int error_of(int place, const char *name) {
	struct stat st;
	size_t length;
	char *text = broker_read(broker, place, name, &length);
	int error = text ? 0 : errno;
	free(text);
	if (!error || error == EPERM) assert_true(broker_open_log(broker, place, name) == -1 && errno == EPERM);
	if (error == EPERM) assert_true(broker_stat(broker, place, name, &st) == -1 && errno == EPERM);
	return error;
}

static void what_was_named_is_opened(void **state) {
	size_t length;
	(void)state;
	char *text = broker_read(broker, file, "cert", &length);
	assert_true(text && length == 4);
	assert_string_equal(text, "cert");
	free(text);
	assert_int_equal(error_of(pems, "a.pem"), 0);
	assert_int_equal(error_of(pems, "none.pem"), ENOENT);
	assert_int_equal(error_of(pairs, "site/fullchain.pem"), 0);
	assert_int_equal(error_of(pairs, "site/privkey.pem"), 0);
	assert_int_equal(error_of(pairs, "none/privkey.pem"), ENOENT);
	int fd = broker_open_log(broker, log_place, "log");
	assert_true(write(fd, "x", 1) == 1 && fcntl(fd, F_GETFL) & O_APPEND && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(!broker_read(broker, log_place, "log", &length) && errno == EPERM);
	close(fd);
}

static void nothing_else_is(void **state) {
	static const struct {
		const int *place;
		const char *name;
	} cases[] = {{&file, "certx"},
				 {&file, "a.pem"},
				 {&file, "../etc/passwd"},
				 {&file, "cert/../cert"},
				 {&file, ""},
				 {&pems, "a.key"},
				 {&pems, "../x.pem"},
				 {&pems, "site/fullchain.pem"},
				 {&pems, ".pem"},
				 {&pems, "/a.pem"},
				 {&pairs, "../privkey.pem"},
				 {&pairs, "site/other"},
				 {&pairs, "site/x/privkey.pem"},
				 {&pairs, "/privkey.pem"},
				 {&pairs, "site/../privkey.pem"},
				 {&log_place, "log2"},
				 {&log_place, "../log"},
				 {&log_place, "cert"}};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (error_of(*cases[i].place, cases[i].name) != EPERM) fail_msg("%s is opened", cases[i].name);
	int outside = 17;
	assert_int_equal(error_of(outside, "cert"), EPERM);
	size_t length;
	assert_true(!broker_list(broker, file, &length) && errno == EPERM);
	assert_true(!broker_list(broker, log_place, &length) && errno == EPERM);
}

static bool lists(int place, const char *name) {
	size_t length;
	bool found = false;
	char *names = broker_list(broker, place, &length);
	assert_non_null(names);
	for (const char *at = names; at < names + length; at += strlen(at) + 1) found |= strcmp(at, name) == 0;
	free(names);
	return found;
}

static void a_directory_is_listed_as_far_as_it_may_be_opened(void **state) {
	(void)state;
	assert_true(lists(pems, "a.pem"));
	assert_false(lists(pems, "cert") || lists(pems, "a.key") || lists(pems, "site"));
	assert_true(lists(pairs, "site"));
	assert_false(lists(pairs, "."));
}

static void stat_says_what_it_says(void **state) {
	struct stat st = {0};
	size_t length;
	(void)state;
	assert_int_equal(broker_stat(broker, pems, "a.pem", &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 5);
	assert_int_equal(broker_stat(broker, pems, ".", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_true(!broker_read(broker, pems, ".", &length) && errno == EPERM);
	assert_true(broker_stat(broker, file, ".", &st) == -1 && errno == EPERM);
	assert_true(broker_stat(broker, pems, "none.pem", &st) == -1 && errno == ENOENT);
}

static pid_t process_of_broker(void) {
	int pid = 0;
	FILE *in = fopen("/proc/thread-self/children", "r");
	assert_true(in && fscanf(in, "%d", &pid) == 1);
	fclose(in);
	return pid;
}

static void pairs_are_looked_at_together(void **state) {
	(void)state;
	size_t length = 0, listed = 0, at = 0;
	struct stat st;
	char *names = broker_list(broker, pairs, &length);
	struct broker_seen *seen = broker_look(broker, pairs, 0, &listed);
	assert_true(names && seen);
	for (const char *name = names; name < names + length; name += strlen(name) + 1, at += BROKER_PAIR) {
		const bool site = strcmp(name, "site") == 0;
		for (size_t i = at; i < at + BROKER_PAIR; i++) {
			assert_int_equal(seen[i].error, site ? 0 : ENOTDIR);
			assert_true(seen[i].name == broker_name_hash(name));
			if (!site) continue;
			assert_int_equal(broker_stat(broker, pairs, i == at ? "site/fullchain.pem" : "site/privkey.pem", &st), 0);
			const struct file_version version = file_version_of(&st);
			assert_true(seen[i].version == file_version_hash(0, &version));
			assert_true(seen[i].inode == file_version_hash_inode(st.st_dev, st.st_ino));
		}
	}
	assert_int_equal(at, listed * BROKER_PAIR);
	free(seen);
	seen = broker_look(broker, pairs, 1, &listed); /* without the first one */
	assert_int_equal(at, (listed + 1) * BROKER_PAIR);
	assert_true(seen[0].name == broker_name_hash(names + strlen(names) + 1));
	free(seen);
	seen = broker_look(broker, pairs, UINT_MAX, &listed);
	assert_int_equal(listed, 0);
	free(seen);
	free(names);
	assert_true(!broker_look(broker, pems, 0, &listed) && errno == EPERM);
	assert_true(!broker_look(broker, file, 0, &listed) && errno == EPERM);
}

static void a_disk_that_hangs_is_not_waited_for(void **state) {
	struct stat st;
	(void)state;
	const pid_t process = process_of_broker();
	assert_int_equal(kill(process, SIGSTOP), 0);
	broker_hurry(broker);
	assert_int_equal(error_of(file, "cert"), ETIMEDOUT);
	assert_int_equal(error_of(pems, "a.pem"), ETIMEDOUT);
	assert_true(broker_is_late(broker));
	assert_int_equal(kill(process, SIGCONT), 0);
	const time_t started = time(NULL);
	while (broker_is_late(broker) && time(NULL) - started < 10) continue;
	assert_int_equal(broker_stat(broker, pems, "a.pem", &st), 0); /* its own answer, not that to the first request */
	assert_int_equal(st.st_size, 5);
}

static int listen_at(const char *name) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", directory, name);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 10), 0);
	return fd;
}

static int error_of_connecting(struct broker *o, const char *name) {
	char path[256];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	int fd = broker_connect(o, path), error = fd == -1 ? errno : 0;
	if (fd != -1) close(fd);
	return error;
}

static void sockets_are_connected_to_where_that_was_named(void **state) {
	static const char *const names[] = {"app.sock", "app.sock2", "other/app.sock", "other/own.sock"};
	char path[256], own[256], link_path[256];
	int listener[COUNT(names)];
	const char *name;
	(void)state;
	snprintf(path, sizeof path, "%s/other", directory);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < COUNT(names); i++) listener[i] = listen_at(names[i]);
	struct broker *o = broker_new();
	assert_int_equal(broker_add(o, path, BROKER_SOCKETS, &name), 0);
	snprintf(path, sizeof path, "%s/app.sock", directory);
	assert_int_equal(broker_add(o, path, BROKER_SOCKET, &name), 1);
	assert_string_equal(name, "app.sock");
	snprintf(own, sizeof own, "%s/other/own.sock", directory);
	assert_int_equal(broker_refuse(o, own), 0);
	assert_true(broker_refuse(o, "/none/own.sock") == -1 && errno == ENOENT);
	assert_int_equal(broker_start(o, true, NULL), 0);

	assert_int_equal(error_of_connecting(o, "app.sock"), 0);
	assert_int_equal(error_of_connecting(o, "app.sock2"), EPERM);
	assert_int_equal(error_of_connecting(o, "app.soc"), EPERM);
	assert_int_equal(error_of_connecting(o, "other/../app.sock2"), EPERM);
	assert_int_equal(error_of_connecting(o, "other/app.sock"), 0);
	assert_int_equal(error_of_connecting(o, "other/none.sock"), ENOENT);
	assert_int_equal(error_of_connecting(o, "other/own.sock"), EDEADLK);
	snprintf(link_path, sizeof link_path, "%s/other/hard.sock", directory);
	assert_int_equal(link(own, link_path), 0);
	assert_int_equal(error_of_connecting(o, "other/hard.sock"), EDEADLK);
	snprintf(link_path, sizeof link_path, "%s/other/soft.sock", directory);
	assert_int_equal(symlink(own, link_path), 0);
	assert_int_equal(error_of_connecting(o, "other/soft.sock"), EDEADLK);
	/* neither is a place of files */
	for (int place = 0; place < 2; place++) {
		struct stat st;
		size_t length;
		assert_true(broker_open_log(o, place, "app.sock") == -1 && errno == EPERM);
		assert_true(broker_stat(o, place, ".", &st) == -1 && errno == EPERM);
		assert_true(!broker_list(o, place, &length) && errno == EPERM);
	}
	broker_free(o);
	for (size_t i = 0; i < COUNT(names); i++) close(listener[i]);
}

static struct broker *another(void) {
	const char *name;
	struct broker *o = broker_new();
	assert_true(broker_add(o, directory, BROKER_PEMS, &name) == 0 && broker_start(o, true, NULL) == 0);
	return o;
}

static void one_ends_though_others_were_started_later(void **state) {
	(void)state;
	struct broker *first = another(), *second = another();
	alarm(60);
	broker_free(first); /* waits for that */
	alarm(0);
	broker_free(second);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_named_is_opened),
									   cmocka_unit_test(nothing_else_is),
									   cmocka_unit_test(a_directory_is_listed_as_far_as_it_may_be_opened),
									   cmocka_unit_test(stat_says_what_it_says),
									   cmocka_unit_test(pairs_are_looked_at_together),
									   cmocka_unit_test(sockets_are_connected_to_where_that_was_named),
									   cmocka_unit_test(a_disk_that_hangs_is_not_waited_for),
									   cmocka_unit_test(one_ends_though_others_were_started_later)};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
