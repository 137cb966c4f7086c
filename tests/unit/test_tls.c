/* test_tls.c - a failed allocation in OpenSSL ends one handshake, or one reading of certificates, and nothing else; and
 * limits of what clients may make the server compute. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gatling/tls/certificates.h"
#include "gatling/tls/records.h"
#include "gatling/tls/tls.h"
#include "gatling/tls/tls_context.h"

static bool counting;
static long allocations, fails_at; /* 0: none fails */

static char buffer[TLS_ROOM];

static bool fails(void) { return counting && ++allocations == fails_at; }

static void *allocate(size_t size, const char *file, int line) {
	(void)file, (void)line;
	return fails() ? NULL : malloc(size);
}

static void *reallocate(void *old, size_t size, const char *file, int line) {
	(void)file, (void)line;
	return fails() ? NULL : realloc(old, size);
}

static void release(void *old, const char *file, int line) {
	(void)file, (void)line;
	free(old);
}

static X509 *sign(EVP_PKEY *key, const char *name, const char *issuer, EVP_PKEY *issuer_key, const char *alternatives) {
	X509 *x = X509_new();
	assert_true(x && X509_set_version(x, 2) && X509_set_pubkey(x, key));
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_NAME_add_entry_by_txt(X509_get_issuer_name(x), "CN", MBSTRING_ASC, (const unsigned char *)issuer, -1, -1, 0);
	if (alternatives) {
		X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternatives);
		assert_true(names && X509_add_ext(x, names, -1));
		X509_EXTENSION_free(names);
	}
	assert_true(X509_sign(x, issuer_key, EVP_sha256()));
	return x;
}

/* Returns a PEM text that the caller frees: keys of two kinds with certificates for a.example, signed by an
 * intermediate certificate, which follows, and the root. */
static char *make_pem(void) {
	enum { KINDS = 2 };
	EVP_PKEY *root = EVP_EC_gen("P-256"), *authority = EVP_EC_gen("P-256"),
			 *key[KINDS] = {EVP_EC_gen("P-256"), EVP_RSA_gen(2048)};
	BIO *out = BIO_new(BIO_s_mem());
	X509 *intermediate = sign(authority, "intermediate", "root", root, NULL);
	X509 *self_signed = sign(root, "root", "root", root, NULL);
	char *text, *copy;
	for (int i = 0; i < KINDS; i++) {
		X509 *x = sign(key[i], "leaf", "intermediate", authority, "DNS:a.example");
		assert_true(PEM_write_bio_PrivateKey(out, key[i], NULL, NULL, 0, NULL, NULL) && PEM_write_bio_X509(out, x));
		X509_free(x);
		EVP_PKEY_free(key[i]);
	}
	assert_true(PEM_write_bio_X509(out, intermediate) && PEM_write_bio_X509(out, self_signed));
	X509_free(intermediate);
	X509_free(self_signed);
	EVP_PKEY_free(root);
	EVP_PKEY_free(authority);
	long length = BIO_get_mem_data(out, &text);
	copy = strndup(text, (size_t)length);
	BIO_free(out);
	return copy;
}

static int chain_length; /* of the certificates sent to the last client */

/* Runs a handshake with a client. Returns the server's result. */
static enum tls_result shake_hands(struct tls_worker *worker, io_loop *loop, SSL_CTX *client_context) {
	enum tls_result result = TLS_FAILED;
	size_t length;
	int end[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
	assert_int_equal(io_fd(loop, end[0], loop), 0);
	SSL *client = SSL_new(client_context);
	assert_true(client && SSL_set_fd(client, end[1]) && SSL_set_tlsext_host_name(client, "localhost"));
	counting = true;
	struct tls *t = tls_new(worker, loop, end[0]);
	counting = false;
	for (int turn = 0; t && turn < 5; turn++) {
		(void)SSL_connect(client);
		ERR_clear_error();
		counting = true;
		result = tls_handshake(t, buffer, &length);
		counting = false;
		assert_int_equal(ERR_peek_error(), 0); /* SSL_get_error() would report it for another connection */
		if (result != TLS_AGAIN) break;
	}
	if (result == TLS_DONE) (void)SSL_connect(client);
	chain_length = sk_X509_num(SSL_get_peer_cert_chain(client));
	if (t) tls_close(t);
	tls_release(t);
	SSL_free(client);
	ERR_clear_error();
	io_close(loop, end[0]);
	close(end[1]);
	return result;
}

/* Returns a complete set of certificates, or NULL without memory. */
static struct certificates *make_set(SSL_CTX *context, const char *pem) {
	char error[CERTIFICATE_ERROR];
	const struct certificate_source source = {.origin = "x", .pem = pem, .host = "localhost"};
	struct certificates *set = certificates_new(context);
	if (set && certificates_add(set, &source, error) == 0 && certificates_seal(set) == 0) return set;
	certificates_release(set);
	return NULL;
}

/* Used by the tests: one client that accepts any certificate, one that only accepts RSA, and the server. */
static struct {
	char *pem;
	SSL_CTX *context, *any, *rsa;
	io_loop *loop;
	struct tls_worker *worker;
	size_t memory;
} f;

static int set_up(void **state) {
	(void)state;
	f.pem = make_pem();
	f.context = tls_context_new(NULL);
	f.any = SSL_CTX_new(TLS_client_method());
	f.rsa = SSL_CTX_new(TLS_client_method());
	f.loop = io_loop_new();
	f.worker = tls_worker_new(false, false, &f.memory);
	if (!f.context || !f.any || !f.rsa || !f.loop || !f.worker) return -1;
	tls_use_certificates(f.worker, make_set(f.context, f.pem));
	return SSL_CTX_set1_sigalgs_list(f.rsa, "RSA-PSS+SHA256:RSA+SHA256") ? 0 : -1;
}

static int tear_down(void **state) {
	(void)state;
	SSL_CTX_free(f.any);
	SSL_CTX_free(f.rsa);
	SSL_CTX_free(f.context);
	tls_worker_free(f.worker);
	io_loop_free(f.loop);
	free(f.pem);
	return 0;
}

/* The first handshake of a process makes objects that all others use, so each one here is that of a new process. */
static void without_memory_the_first_handshake_spoils_no_other(void **state) {
	enum { FIRST = 900, STRIDE = 9 };
	(void)state;
	for (fails_at = 1; fails_at < FIRST; fails_at += STRIDE) {
		pid_t child = fork();
		if (child == 0) {
			(void)shake_hands(f.worker, f.loop, f.any);
			fails_at = 0;
			_exit(shake_hands(f.worker, f.loop, f.any) != TLS_DONE);
		}
		int status = 0;
		assert_true(child > 0 && waitpid(child, &status, 0) == child);
		if (status) fail_msg("allocation %ld", fails_at);
	}
	fails_at = 0;
}

/* OpenSSL allocates as much as the first octets announce. */
static void what_a_client_hello_announces_is_counted(void **state) {
	static const struct {
		char octets[9];
		size_t length, least, most;
	} cases[] = {
		{"\x16\3\1\2\0\1\0\1\xfc", 9, 508, 508},
		{"\x16\3\1\x40\0\1\1\xff\xb8", 9, 131000, 131000},
		{"\x16\3\1\x40\0\1\xff\xff\xff", 9, 131000, 132000},
		{"\x16\3\1\0\1\1\x16\3\1", 9, 131000, 132000}, /* a record of one octet */
		{"\x16\3\1", 3, 131000, 132000},
	};
	size_t length;
	int end[2];
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end), 0);
		assert_int_equal(io_fd(f.loop, end[0], f.loop), 0);
		struct tls *t = tls_new(f.worker, f.loop, end[0]);
		assert_non_null(t);
		const size_t before = tls_library_memory(t);
		assert_int_equal(write(end[1], cases[i].octets, cases[i].length), cases[i].length);
		assert_int_not_equal(tls_handshake(t, buffer, &length), TLS_DONE);
		assert_in_range(tls_library_memory(t) - before, cases[i].least, cases[i].most);
		tls_release(t);
		io_close(f.loop, end[0]);
		close(end[1]);
	}
}

static void a_failed_allocation_ends_a_handshake_and_nothing_else(void **state) {
	(void)state;
	assert_int_equal(shake_hands(f.worker, f.loop, f.any), TLS_DONE); /* makes what is made only once */
	allocations = 0;
	assert_int_equal(shake_hands(f.worker, f.loop, f.any), TLS_DONE);
	long all = allocations;
	assert_true(all > 50);
	for (fails_at = 1; fails_at <= all; fails_at++) {
		allocations = 0;
		(void)shake_hands(f.worker, f.loop, f.any);
	}
	fails_at = 0;
	assert_int_equal(shake_hands(f.worker, f.loop, f.any), TLS_DONE);
}

/* Checks that a client completes a handshake, and gets the leaf and the intermediate. */
static void check_chain(SSL_CTX *client) {
	assert_int_equal(shake_hands(f.worker, f.loop, client), TLS_DONE);
	assert_int_equal(chain_length, 2);
}

/* OpenSSL keeps certificates and keys in which an allocation has failed, and does not always report that. */
static void without_memory_a_set_is_whole_or_none(void **state) {
	enum { STRIDE = 307 }; /* all 16,000 allocations would take a minute and a half */
	long all = 0;
	(void)state;
	for (long n = 0; n <= all; n += STRIDE) {
		allocations = 0;
		fails_at = n;
		counting = true;
		struct certificates *set = make_set(f.context, f.pem);
		counting = false;
		fails_at = 0;
		if (!n) all = allocations;
		assert_true(set || n);
		if (!set) continue;
		assert_true(certificates_cover(set, "a.example") && certificates_cover(set, "localhost"));
		tls_use_certificates(f.worker, set);
		check_chain(f.any);
		check_chain(f.rsa);
	}
}

/* A connection after its handshake. */
struct connected {
	int end[2];
	SSL *client;
	struct tls *server;
};

static struct connected connect_with(int version, uint8_t fragments) {
	struct connected c;
	size_t length;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, c.end), 0);
	assert_int_equal(io_fd(f.loop, c.end[0], f.loop), 0);
	c.client = SSL_new(f.any);
	c.server = tls_new(f.worker, f.loop, c.end[0]);
	assert_true(c.client && c.server && SSL_set_fd(c.client, c.end[1]));
	assert_true(SSL_set_max_proto_version(c.client, version) &&
				SSL_set_tlsext_max_fragment_length(c.client, fragments));
	enum tls_result result = TLS_AGAIN;
	while (result == TLS_AGAIN) {
		(void)SSL_connect(c.client);
		result = tls_handshake(c.server, buffer, &length);
	}
	assert_int_equal(result, TLS_DONE);
	assert_int_equal(tls_read(c.server, buffer, sizeof buffer), -1);
	assert_int_equal(tls_send_held(c.server), IOB_DONE);
	assert_int_equal(SSL_connect(c.client), 1);
	return c;
}

static void disconnect(struct connected c) {
	tls_release(c.server);
	SSL_free(c.client);
	ERR_clear_error();
	io_close(f.loop, c.end[0]);
	close(c.end[1]);
}

/* Returns whether a connection survives that many key updates at once. */
static bool lives_with_renewals(unsigned count, int type) {
	const struct connected c = connect_with(TLS1_3_VERSION, TLSEXT_max_fragment_length_DISABLED);
	for (unsigned i = 0; i < count; i++)
		assert_true(SSL_key_update(c.client, type) == 1 && SSL_do_handshake(c.client) == 1);
	assert_int_equal(SSL_write(c.client, "x", 1), 1);
	const bool lives = tls_read(c.server, buffer, sizeof buffer) == 1;
	disconnect(c);
	return lives;
}

/* With TLS 1.3 the keys alone remain, and what has come of a record. */
static void what_a_connection_holds_is_counted(void **state) {
	enum { LENGTH = 10000, PART = 4000 };
	static char text[LENGTH];
	char *record;
	(void)state;
	struct connected c = connect_with(TLS1_2_VERSION, TLSEXT_max_fragment_length_DISABLED);
	assert_in_range(tls_library_memory(c.server), TLS_SESSION_MEMORY, TLS_SESSION_MEMORY_3_2);
	disconnect(c);
	assert_int_equal(f.memory, 0);
	c = connect_with(TLS1_3_VERSION, TLSEXT_max_fragment_length_DISABLED);
	assert_int_equal(tls_library_memory(c.server), RECORDS_MEMORY);
	SSL_set0_wbio(c.client, BIO_new(BIO_s_mem()));
	assert_int_equal(SSL_write(c.client, text, LENGTH), LENGTH);
	const long length = BIO_get_mem_data(SSL_get_wbio(c.client), &record);
	assert_int_equal(length, LENGTH + RECORD_OVERHEAD);
	assert_int_equal(write(c.end[1], record, PART), PART);
	assert_int_equal(tls_read(c.server, buffer, sizeof buffer), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(tls_memory(c.server), PART);
	assert_int_equal(write(c.end[1], record + PART, (size_t)length - PART), length - PART);
	assert_int_equal(tls_read(c.server, buffer, sizeof buffer), LENGTH);
	assert_int_equal(tls_memory(c.server), 0);
	disconnect(c);
	assert_int_equal(f.memory, 0);
}

/* RFC 6066, section 4. */
static void a_client_that_wants_small_records_gets_them(void **state) {
	enum { LENGTH = 3000 };
	static char text[LENGTH];
	(void)state;
	const struct connected c = connect_with(TLS1_3_VERSION, TLSEXT_max_fragment_length_512);
	iob *batch = iob_new();
	uint64_t sent = 0;
	assert_true(batch && iob_addcopy(batch, text, LENGTH) == 0);
	assert_int_equal(tls_send(c.server, batch, LENGTH, IO_LAST, &sent), IOB_DONE);
	assert_int_equal(sent, LENGTH);
	int got = 0;
	for (int n; got < LENGTH && (n = SSL_read(c.client, text, LENGTH)) > 0;) got += n;
	assert_int_equal(got, LENGTH);
	iob_free(batch);
	disconnect(c);
}

static void nothing_follows_an_alert(void **state) {
	(void)state;
	const struct connected c = connect_with(TLS1_3_VERSION, TLSEXT_max_fragment_length_DISABLED);
	iob *batch = iob_new();
	uint64_t sent = 0;
	assert_true(batch && iob_addcopy(batch, "last", 4) == 0);
	assert_int_equal(tls_send(c.server, batch, 4, IO_MORE, &sent), IOB_DONE);
	assert_int_equal(iob_addcopy(batch, "later", 5), 0);
	assert_int_equal(tls_send(c.server, batch, 5, IO_MORE, &sent), IOB_FAILED);
	assert_int_equal(SSL_read(c.client, buffer, sizeof buffer), 4);
	assert_int_equal(SSL_read(c.client, buffer, sizeof buffer), 0);
	assert_int_equal(SSL_get_shutdown(c.client), SSL_RECEIVED_SHUTDOWN);
	iob_free(batch);
	disconnect(c);
}

static void a_client_renews_keys_a_few_times_in_a_second(void **state) {
	(void)state;
	assert_true(lives_with_renewals(TLS_RENEWALS, SSL_KEY_UPDATE_NOT_REQUESTED));
	assert_true(lives_with_renewals(TLS_RENEWALS, SSL_KEY_UPDATE_REQUESTED));
	assert_false(lives_with_renewals(TLS_RENEWALS + 1, SSL_KEY_UPDATE_NOT_REQUESTED));
	assert_false(lives_with_renewals(200, SSL_KEY_UPDATE_REQUESTED));
}

/* As if the server had started with a clock that is behind. */
static void a_certificate_covers_its_names_as_soon_as_it_is_valid(void **state) {
	(void)state;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	BIO *out = BIO_new(BIO_s_mem());
	X509 *early = sign(key, "early", "early", key, "DNS:a.example");
	X509_gmtime_adj(X509_getm_notBefore(early), 2);
	assert_true(X509_sign(early, key, EVP_sha256()));
	assert_true(PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) && PEM_write_bio_X509(out, early));
	assert_int_equal(BIO_write(out, "", 1), 1);
	char *pem;
	(void)BIO_get_mem_data(out, &pem);
	struct certificates *set = make_set(f.context, pem);
	assert_non_null(set);
	assert_false(certificates_cover(set, "a.example"));
	sleep(3);
	assert_true(certificates_cover(set, "a.example"));
	certificates_release(set);
	X509_free(early);
	EVP_PKEY_free(key);
	BIO_free(out);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_the_first_handshake_spoils_no_other),
		cmocka_unit_test(a_failed_allocation_ends_a_handshake_and_nothing_else),
		cmocka_unit_test(without_memory_a_set_is_whole_or_none),
		cmocka_unit_test(what_a_client_hello_announces_is_counted),
		cmocka_unit_test(what_a_connection_holds_is_counted),
		cmocka_unit_test(a_client_that_wants_small_records_gets_them),
		cmocka_unit_test(nothing_follows_an_alert),
		cmocka_unit_test(a_client_renews_keys_a_few_times_in_a_second),
		cmocka_unit_test(a_certificate_covers_its_names_as_soon_as_it_is_valid),
	};
	if (!CRYPTO_set_mem_functions(allocate, reallocate, release)) return 1;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
