/* test_acme.c - how names, dates and the output of uacme are interpreted; proofs that processes share. */
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gatling/acme/attempt.h"
#include "gatling/acme/store.h"
#include "gatling/acme/subjects.h"
#include "tests/unit/check.h"

enum { DAY_S = 24 * 60 * 60 };

static const int64_t now_s = 2000000000;

static void names_of_the_public_dns_are_possible(void **state) {
	(void)state;
	const char *const possible[] = {"example.org", "www.example.org", "a-b.example.org", "xn--bcher-kva.example.org",
									"1.example.org"};
	const char *const not [] = {"localhost",
								"default",
								"",
								"org",
								"192.0.2.1",
								"www.example.org:80",
								"Www.example.org",
								"a_b.example.org",
								"-a.example.org",
								"a-.example.org",
								".example.org",
								"example.org.",
								"a..org",
								"printer.local",
								"a.test",
								"x.example",
								"a.internal",
								"a.onion",
								"[::1]",
								"a/b.org",
								"b\xc3\xbc.example.org"};
	for (size_t i = 0; i < sizeof possible / sizeof *possible; i++) assert_true(subject_possible(possible[i]));
	for (size_t i = 0; i < sizeof not / sizeof *not ; i++) assert_false(subject_possible(not [i]));
}

static void public_addresses_are_possible_as_browsers_write_them(void **state) {
	(void)state;
	const char *const possible[] = {"192.0.2.1", "2001:db8::1", "8.8.8.8"};
	const char *const not [] = {"",
								"10.1.2.3",
								"100.64.0.1",
								"127.0.0.1",
								"169.254.1.1",
								"172.31.255.255",
								"192.168.0.1",
								"224.0.0.1",
								"255.255.255.255",
								"0.0.0.0",
								"192.0.2.01",
								"192.0.2",
								"192.0.2.1:80",
								"::",
								"::1",
								"::ffff:10.0.0.1",
								"::ffff:192.0.2.1",
								"fd00::1",
								"fe80::1",
								"ff02::1",
								"2001:DB8::1",
								"2001:db8:0::1",
								"[2001:db8::1]",
								"example.org"};
	for (size_t i = 0; i < sizeof possible / sizeof *possible; i++) assert_true(subject_is_address(possible[i]));
	for (size_t i = 0; i < sizeof not / sizeof *not ; i++) assert_false(subject_is_address(not [i]));
}

/* The output of uacme -vvv when the authority answers. */
#define ANSWER(FIELDS, BODY)                                                                                           \
	"uacme: acme_post: HTTP headers:\n" FIELDS "\r\n\r\n\nuacme: acme_post: HTTP body:\n" BODY "\n"                    \
	"uacme: the server reported the following error:\n" BODY "\nuacme: failed\n"
#define PROBLEM(TYPE, DETAIL) "{\n  \"type\": \"" TYPE "\",\n  \"detail\": \"" DETAIL "\",\n  \"status\": 400\n}"
#define ACME_ERROR "urn:ietf:params:acme:error:"

static void what_the_authority_says_becomes_one_line(void **state) {
	static const struct {
		const char *text, *reason;
		bool limited;
		int64_t wait_s;
	} c[] = {
		{ANSWER("HTTP/1.1 400 Bad Request",
				PROBLEM(ACME_ERROR "connection", "192.0.2.1: Fetching \\\"x\\\": refused\\nand\x1b[2J")),
		 "the authority could not reach port 80 of this name: 192.0.2.1: Fetching \"x\": refusednand?[2J", false, 0},
		{ANSWER("HTTP/2 429", PROBLEM(ACME_ERROR "rateLimited", "too many, retry after 2033-05-18 04:33:20 UTC: see")),
		 "the authority wants fewer requests: too many, retry after 2033-05-18 04:33:20 UTC: see", true, 3600},
		{ANSWER("HTTP/2 429\r\nRetry-After: 7200", PROBLEM(ACME_ERROR "rateLimited", "too many")),
		 "the authority wants fewer requests: too many", true, 7200},
		{ANSWER("HTTP/2 200", PROBLEM(ACME_ERROR "rateLimited", "too many")),
		 "the authority wants fewer requests: too many", true, 0},
		{ANSWER("HTTP/1.1 503 Out\r\nretry-after: Wed, 18 May 2033 03:43:20 GMT", ""),
		 "the authority is out of order, or busy: it answers with status 503", true, 600},
		{ANSWER("HTTP/1.1 503 Out\r\nRetry-After: 99999999999999999999", ""),
		 "the authority is out of order, or busy: it answers with status 503", true, EXPLAIN_LIMITED_MAX_S},
		{ANSWER("HTTP/1.1 500 Out\r\nRetry-After: -5", ""),
		 "the authority is out of order, or busy: it answers with status 500", false, 0},
		{ANSWER("HTTP/1.1 200 OK\r\nRetry-After: 5", "<html>\nRetry-After: 9\n</html>"),
		 "the answer, with status 200, is not one of an authority: is https://a/dir the directory of one?", false, 0},
		{ANSWER("HTTP/1.1 400 Bad", "") ANSWER("HTTP/1.1 404 Not Found", ""),
		 "the answer, with status 404, is not one of an authority: is https://a/dir the directory of one?", false, 0},
		{ANSWER("HTTP/2 400", PROBLEM(ACME_ERROR "invalidProfile", "no profile \\\"x\\\"")),
		 "the authority has no profile of the name given with --acme-profile: no profile \"x\"", false, 0},
		{ANSWER("HTTP/2 200", "{}") "uacme: profile must be a supported one:\n{\n    \"a\": \"b\"\n}\n",
		 "the authority has no profile of the name given with --acme-profile: profile must be a supported one:", false,
		 0},
		{"uacme: server does not support profiles\n",
		 "the authority has no profile of the name given with --acme-profile: server does not support profiles", false,
		 0},
		{ANSWER("HTTP/2 403", PROBLEM("urn:other:new", "x")), "the authority refuses: x", false, 0},
		{"uacme: acme_get: url=https://a/dir\nuacme: curl_get: GET https://a/dir failed: Couldn't connect\n"
		 "uacme: acme_get: curl_get failed\n",
		 "cannot get an answer from https://a/dir", false, 0},
		{"uacme: one\nuacme: two\n", "uacme: two", false, 0},
		{"", "uacme: it says nothing", false, 0},
		{"uacme: the server reported the following error:\n{\"type\": \"urn:x:dns",
		 "the authority found no address of this name: add it to the DNS: ", false, 0},
		{"uacme: HTTP headers:", "uacme: HTTP headers:", false, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct outcome o;
		explain(c[i].text, "https://a/dir", now_s, &o);
		assert_string_equal(o.reason, c[i].reason);
		assert_int_equal(o.limited, c[i].limited);
		assert_int_equal(o.limited_until_s, c[i].wait_s ? now_s + c[i].wait_s : 0);
	}
}

/* --- the store --- */

static char directory[] = "/tmp/gatling-acme-XXXXXX";

static const struct acme_options options = {.directory = directory, .url = "https://a/dir"};

static int set_up(void **state) {
	(void)state;
	return mkdtemp(directory) && store_create(directory) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	return system(command); /* NOLINT(cert-env33-c): a path of our own */
}

/* --- a run --- */

/* Runs a shell script in place of uacme until it ends. now_ms: the time since the start. */
static struct outcome run(const char *program, int64_t now_ms) {
	char path[PATH_MAX], *search = strdup(getenv("PATH")); /* NOLINT(concurrency-mt-unsafe): one thread */
	struct challenges *challenges = challenges_new();
	struct attempt *a = calloc(1, sizeof *a);
	struct outcome outcome;
	store_path(path, directory, "uacme/uacme");
	assert_int_equal(store_write(path, program, 0700), 0);
	store_path(path, directory, "uacme:%s", search);
	assert_int_equal(setenv("PATH", path, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	assert_int_equal(attempt_start(a, ATTEMPT_CERTIFICATE, &options, "a.example.org", 0), 0);
	while (!attempt_go_on(a, challenges, now_ms, &outcome)) {
		struct pollfd output = {.fd = a->output, .events = POLLIN};
		assert_int_equal(poll(&output, 1, -1), 1);
	}
	assert_int_equal(a->process, 0);
	assert_int_equal(setenv("PATH", search, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	challenges_free(challenges);
	free(search);
	free(a);
	return outcome;
}

static void a_run_that_takes_too_long_is_ended(void **state) {
	(void)state;
	struct outcome o = run("#!/bin/sh\nexec sleep 1000\n", INT64_C(1000) * ATTEMPT_S);
	assert_false(o.good);
	assert_string_equal(o.reason, "the authority took more than 5 minutes");
}

static void the_end_of_what_a_run_says_counts(void **state) {
	(void)state;
	struct outcome o = run("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x >&2\necho >&2\n"
						   "echo 'uacme: the end' >&2\nexit 1\n",
						   0);
	assert_false(o.good);
	assert_string_equal(o.reason, "uacme: the end");
	assert_true(run("#!/bin/sh\nexit 0\n", 0).good);
}

/* --- renewal --- */

/* Writes a certificate, valid for lifetime_s with left_s left, to where it is in use. Returns when it is renewed. */
static int64_t due(long lifetime_s, long left_s) {
	struct subject s = {.name = "a.example.org", .failures = 3};
	char path[PATH_MAX];
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	X509 *certificate = X509_new();
	assert_non_null(ASN1_TIME_set(X509_getm_notAfter(certificate), now_s + left_s));
	assert_non_null(ASN1_TIME_set(X509_getm_notBefore(certificate), now_s + left_s - lifetime_s));
	assert_int_equal(X509_set_pubkey(certificate, key), 1);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	store_path(path, directory, "live/%s", s.name);
	(void)mkdir(path, 0700);
	store_path(path, directory, "live/a.example.org/fullchain.pem");
	store_path(path, directory, "uacme/%s", s.name);
	(void)mkdir(path, 0700);
	assert_int_equal(store_note_authority(directory, s.name, options.url), 0);
	store_path(path, directory, "live/a.example.org/fullchain.pem");
	FILE *file = fopen(path, "w");
	assert_int_equal(PEM_write_X509(file, certificate), 1);
	assert_int_equal(fclose(file), 0);
	X509_free(certificate);
	EVP_PKEY_free(key);
	subject_schedule(&s, &options, now_s);
	assert_int_equal(s.failures, 0);
	return s.due_s - now_s;
}

static void renewal_is_on_the_day_before_a_third_is_left(void **state) {
	(void)state;
	for (int i = 0; i < 20; i++) {
		int64_t month = due(90L * DAY_S, 90L * DAY_S), week = due(6L * DAY_S, 6L * DAY_S);
		int64_t half = due(45L * DAY_S, 45L * DAY_S);
		assert_true(month > 59 * DAY_S && month <= 60 * DAY_S);
		assert_true(half > 29 * DAY_S && half <= 30 * DAY_S);
		assert_true(week > 4 * DAY_S - DAY_S / 2 && week <= 4 * DAY_S);
	}
	assert_true(due(90L * DAY_S, 30L * DAY_S) <= 0);
	assert_int_equal(due(90L * DAY_S, -1), 0);
}

static void the_authority_is_asked_about_good_certificates_that_are_not_due(void **state) {
	(void)state;
	struct subject s = {.name = "asked.example.org", .listed = true, .good = true, .due_s = now_s + 4 * DAY_S};
	struct subjects all = {.count = 1};
	TAILQ_INIT(&all.all);
	TAILQ_INSERT_TAIL(&all.all, &s, all);
	s.ask_s = now_s + 60;
	assert_null(subjects_to_ask(&all, now_s));
	assert_ptr_equal(subjects_to_ask(&all, now_s + 60), &s);
	s.ask_s = now_s + DAY_S; /* set while the clock was ahead */
	assert_ptr_equal(subjects_to_ask(&all, now_s), &s);
	s.ask_s = now_s;
	s.due_s = now_s;
	assert_null(subjects_to_ask(&all, now_s));
	s.due_s = now_s + 4 * DAY_S;
	s.good = false;
	assert_null(subjects_to_ask(&all, now_s));
	s.ask_s = now_s + 60;
	s.good = true;
	subjects_hurry(&all, now_s);
	assert_ptr_equal(subjects_to_ask(&all, now_s), &s);
	subject_schedule(&s, &options, now_s); /* it has no certificate: nothing to ask about */
	assert_null(subjects_to_ask(&all, now_s + DAY_S));
}

static void a_failure_puts_the_next_attempt_off_up_to_half_a_day(void **state) {
	(void)state;
	struct subject s = {.name = "none.example.org"};
	subject_schedule(&s, &options, now_s);
	assert_int_equal(s.due_s, now_s);
	const int64_t minutes[] = {15, 30, 60, 120, 240, 480, 720, 720};
	for (size_t i = 0; i < sizeof minutes / sizeof *minutes; i++) {
		subject_put_off(&s, now_s);
		assert_int_equal(s.due_s, now_s + 60 * minutes[i]);
	}
}

static void a_pause_that_began_while_the_clock_was_ahead_is_over(void **state) {
	(void)state;
	const int64_t ahead_s = now_s + 400 * DAY_S;
	struct subject s = {.name = "ahead.example.org"};
	subject_put_off(&s, now_s);
	assert_false(subject_is_due(&s, now_s));
	assert_true(subject_is_due(&s, s.due_s));
	s.due_s = now_s + 7 * DAY_S; /* as an authority may request (Retry-After) */
	assert_false(subject_is_due(&s, now_s));
	subject_put_off(&s, ahead_s);
	assert_true(subject_is_due(&s, now_s));
	s.good = true; /* the time is now that of its renewal */
	assert_false(subject_is_due(&s, now_s));
}

static void a_key_that_was_cut_off_is_removed(void **state) {
	char path[PATH_MAX];
	(void)state;
	store_path(path, directory, "uacme/private");
	assert_int_equal(mkdir(path, 0700), 0);
	store_path(path, directory, "uacme/private/key.pem");
	assert_int_equal(store_write(path, "-----BEGIN PRIVATE KEY-----\nMIG", 0600), 0);
	assert_int_equal(store_prepare(directory, ""), 0);
	assert_int_equal(access(path, F_OK), -1);
	FILE *file = fopen(path, "w");
	EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
	EVP_PKEY_free(key);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(store_prepare(directory, ""), 0);
	assert_int_equal(access(path, F_OK), 0);
}

/* --- proofs --- */

static void proofs_of_another_process_are_found_until_they_are_removed(void **state) {
	char proof[CHALLENGE_PROOF_MAX];
	(void)state;
	struct challenges *c = challenges_new();
	if (fork() == 0) _exit(!challenges_put(c, c, SLICE("token"), SLICE("token.proof")));
	int status;
	assert_true(wait(&status) != -1 && status == 0);
	assert_int_equal(challenges_find(c, SLICE("token"), proof), strlen("token.proof"));
	assert_memory_equal(proof, "token.proof", strlen("token.proof"));
	assert_int_equal(challenges_find(c, SLICE("toke"), proof), 0);
	assert_int_equal(challenges_find(c, SLICE(""), proof), 0);
	challenges_remove_all(c, NULL); /* removes those that have no owner in this process */
	assert_int_equal(challenges_find(c, SLICE("token"), proof), 0);
	assert_true(challenges_put(c, c, SLICE("a"), SLICE("a.proof")) &&
				challenges_put(c, state, SLICE("b"), SLICE("b.proof")));
	challenges_remove(c, SLICE("none"));
	challenges_remove(c, SLICE("a"));
	assert_int_equal(challenges_find(c, SLICE("a"), proof), 0);
	assert_int_equal(challenges_find(c, SLICE("b"), proof), strlen("b.proof"));
	challenges_remove_all(c, state);
	assert_int_equal(challenges_find(c, SLICE("b"), proof), 0);
	challenges_free(c);
}

static void proofs_are_limited(void **state) {
	char long_text[CHALLENGE_PROOF_MAX + 2], name[16], proof[CHALLENGE_PROOF_MAX];
	(void)state;
	struct challenges *c = challenges_new();
	memset(long_text, 'a', sizeof long_text);
	assert_false(challenges_put(c, c, (struct slice){.at = long_text, .length = CHALLENGE_TOKEN_MAX + 1}, SLICE("x")));
	assert_false(challenges_put(c, c, SLICE("x"), (struct slice){.at = long_text, .length = CHALLENGE_PROOF_MAX + 1}));
	assert_false(challenges_put(c, c, SLICE("a/b"), SLICE("x")));
	assert_false(challenges_put(c, c, SLICE("a"), SLICE("<b>")));
	assert_false(challenges_put(c, c, SLICE(""), SLICE("x")));
	for (int i = 0; i < CHALLENGES_MAX + 1; i++) {
		snprintf(name, sizeof name, "t%d", i);
		assert_int_equal(challenges_put(c, c, slice_of(name), slice_of(name)), i < CHALLENGES_MAX);
	}
	assert_int_equal(challenges_find(c, SLICE("t15"), proof), 3);
	challenges_remove_all(c, c);
	assert_int_equal(challenges_find(c, SLICE("t15"), proof), 0);
	challenges_free(c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_public_dns_are_possible),
		cmocka_unit_test(public_addresses_are_possible_as_browsers_write_them),
		cmocka_unit_test(what_the_authority_says_becomes_one_line),
		cmocka_unit_test(a_run_that_takes_too_long_is_ended),
		cmocka_unit_test(the_end_of_what_a_run_says_counts),
		cmocka_unit_test(renewal_is_on_the_day_before_a_third_is_left),
		cmocka_unit_test(the_authority_is_asked_about_good_certificates_that_are_not_due),
		cmocka_unit_test(a_failure_puts_the_next_attempt_off_up_to_half_a_day),
		cmocka_unit_test(a_pause_that_began_while_the_clock_was_ahead_is_over),
		cmocka_unit_test(a_key_that_was_cut_off_is_removed),
		cmocka_unit_test(proofs_of_another_process_are_found_until_they_are_removed),
		cmocka_unit_test(proofs_are_limited),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
