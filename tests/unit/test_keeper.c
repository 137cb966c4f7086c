/* test_keeper.c - the keeper starts a server for each directory that DIR becomes, whenever the one before ends. Servers
 * here serve nothing, and end as soon as they have a successor. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gatling/keeper/keeper.h"
#include "tests/unit/check.h"

enum { WAIT_MS = 20000, NAME_ROOM = 64 };

/* What a server says when it has opened DIR; then it waits for a byte before it tells the keeper that it serves. */
struct opened {
	pid_t server;
	char number; /* the directory's name */
};

static char parent[] = "/tmp/gatling-keeper-XXXXXX", dir[NAME_ROOM];
static pid_t keeper;
static int said[2], may_serve[2];

/* Makes DIR a symlink to a new directory of this name. */
static void become(char number) {
	const char text[] = {number, '\0'};
	char release[NAME_ROOM], new[NAME_ROOM];
	snprintf(release, sizeof release, "%s/%s", parent, text);
	snprintf(new, sizeof new, "%s/new", parent);
	assert_int_equal(mkdir(release, S_IRWXU), 0);
	assert_int_equal(symlink(text, new), 0);
	assert_int_equal(rename(new, dir), 0);
}

static void serve(const struct keeper_link *link) {
	char number[2] = "", byte;
	struct keeper_message m = {.word = '\0'};
	struct pollfd channel = {.fd = link->channel, .events = POLLIN};
	int heard = 0, successor;
	const int root = open(dir, O_RDONLY | O_DIRECTORY);
	if (root == -1 || readlink(dir, number, 1) != 1) _exit(2);
	const struct opened o = {.server = getpid(), .number = *number};
	if (write(said[1], &o, sizeof o) != sizeof o || read(may_serve[0], &byte, 1) != 1) _exit(2);
	if (byte == 'f') _exit(3); /* it fails */
	keeper_tell_serving(link, root);
	while (heard != -1 && m.word != KEEPER_SUCCESSOR && poll(&channel, 1, -1) != -1)
		heard = keeper_receive(link->channel, &m, &successor);
	_exit(0);
}

static int set_up(void **state) {
	(void)state;
	strcpy(strrchr(parent, '-'), "-XXXXXX");
	if (!mkdtemp(parent) || pipe(said) == -1 || pipe(may_serve) == -1) return -1;
	snprintf(dir, sizeof dir, "%s/site", parent);
	become('1');
	keeper = fork();
	if (keeper != 0) return keeper == -1 ? -1 : 0;
	struct keeper_link link;
	struct service service = {.channel = -1};
	struct sockets sockets = {.at = NULL}, udp = {.at = NULL};
	sigset_t none;
	sigemptyset(&none);
	close(said[0]);
	close(may_serve[1]); /* servers that wait for it end with the test */
	if (keeper_start(&(struct keeper_options){.root = dir}, &service, &sockets, &udp, &none, &link) == -1) _exit(2);
	serve(&link);
	return -1;
}

static int tear_down(void **state) {
	char command[NAME_ROOM * 2];
	(void)state;
	if (keeper) (void)kill(keeper, SIGKILL); /* the servers notice */
	if (keeper) (void)waitpid(keeper, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(said[i]);
		close(may_serve[i]);
	}
	snprintf(command, sizeof command, "rm -r '%s'", parent);
	return system(command);
}

/* Waits for the server of a directory. Returns its process. */
static pid_t opened(char number) {
	struct opened o;
	struct pollfd p = {.fd = said[0], .events = POLLIN};
	if (poll(&p, 1, WAIT_MS) != 1) fail_msg("no server for directory %c", number);
	assert_int_equal(read(said[0], &o, sizeof o), sizeof o);
	assert_int_equal(o.number, number);
	return o.server;
}

static void let(char what) { assert_int_equal(write(may_serve[1], &what, 1), 1); }

/* Waits until the keeper knows that a server has ended. */
static void await_end(pid_t server) {
	for (int ms = 0; ms < WAIT_MS && kill(server, 0) == 0; ms++) (void)poll(NULL, 0, 1);
	assert_int_equal(kill(server, 0), -1);
}

/* Its successor has taken over, and waits for a processor. */
static void a_server_may_end_before_its_successor_says_that_it_serves(void **state) {
	(void)state;
	pid_t before = opened('1');
	let('s');
	for (char number = '2'; number < '4'; number++) {
		become(number);
		const pid_t server = opened(number);
		await_end(before);
		let('s');
		before = server;
	}
}

static void without_any_server_the_keeper_ends_as_the_last_one(void **state) {
	int status;
	(void)state;
	const pid_t first = opened('1');
	let('s');
	become('2');
	(void)opened('2');
	await_end(first);
	let('f');
	assert_int_equal(waitpid(keeper, &status, 0), keeper);
	keeper = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_server_may_end_before_its_successor_says_that_it_serves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_any_server_the_keeper_ends_as_the_last_one, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
