/* fixture.h - for unit tests of QUIC: each has a server and a client of it. */
#ifndef TESTS_QUIC_FIXTURE_H
#define TESTS_QUIC_FIXTURE_H

#include "tests/quic/client.h"
#include "tests/quic/server.h"
#include "tests/unit/check.h"

static unsigned server_workers = 1;
static struct client *client;

static int set_up(void **state) {
	(void)state;
	server_open(server_workers);
	client = client_new(0);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	client_free(client);
	server_close();
	return 0;
}

static int set_up_group(void **state) {
	(void)state;
	server_set_up();
	return 0;
}

static int tear_down_group(void **state) {
	(void)state;
	server_tear_down();
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define RUN(tests) cmocka_run_group_tests(tests, set_up_group, tear_down_group)

#endif
