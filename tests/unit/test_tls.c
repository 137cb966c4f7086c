/* test_tls.c - a handshake in which any allocation of OpenSSL's fails ends, and nothing else does. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/tls/certificates.h"
#include "gatling/tls/tls.h"

static bool counting;
static long allocations, fails_at; /* 0: none fails */

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

/* A key and a certificate that it has signed itself, PEM; to be freed. */
static char *make_pem(void) {
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	BIO *out = BIO_new(BIO_s_mem());
	char *text, *copy;
	assert_true(key && x && out && X509_set_version(x, 2) && X509_set_pubkey(x, key));
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"x", -1, -1, 0);
	assert_true(X509_set_issuer_name(x, X509_get_subject_name(x)) && X509_sign(x, key, EVP_sha256()));
	assert_true(PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) && PEM_write_bio_X509(out, x));
	long length = BIO_get_mem_data(out, &text);
	copy = strndup(text, (size_t)length);
	BIO_free(out);
	X509_free(x);
	EVP_PKEY_free(key);
	return copy;
}

/* The server's side of a handshake with a client, as far as it gets. */
static enum tls_result shake_hands(struct tls_worker *worker, io_loop *loop, SSL_CTX *client_context) {
	static char buffer[TLS_ROOM];
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
		counting = true;
		result = tls_handshake(t, buffer, &length);
		counting = false;
		if (result != TLS_AGAIN) break;
	}
	if (t) tls_close(t);
	tls_free(t);
	SSL_free(client);
	ERR_clear_error();
	io_close(loop, end[0]);
	close(end[1]);
	return result;
}

static void a_failed_allocation_ends_a_handshake_and_nothing_else(void **state) {
	char error[CERTIFICATE_ERROR], warning[CERTIFICATE_ERROR], *pem = make_pem();
	io_loop *loop = io_loop_new();
	struct certificates *set = certificates_new(NULL);
	struct tls_worker *worker = tls_worker_new(false, false);
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());
	const struct certificate_source source = {.origin = "x", .pem = pem, .host = "localhost"};
	(void)state;
	assert_true(loop && set && worker && client);
	assert_int_equal(certificates_add(set, &source, error, warning), 0);
	assert_int_equal(certificates_seal(set), 0);
	tls_use_certificates(worker, set);
	assert_int_equal(shake_hands(worker, loop, client), TLS_DONE); /* what is made once is made now */
	allocations = 0;
	assert_int_equal(shake_hands(worker, loop, client), TLS_DONE);
	long all = allocations;
	assert_true(all > 50);
	for (fails_at = 1; fails_at <= all; fails_at++) {
		allocations = 0;
		(void)shake_hands(worker, loop, client);
	}
	fails_at = 0;
	assert_int_equal(shake_hands(worker, loop, client), TLS_DONE);
	SSL_CTX_free(client);
	tls_worker_free(worker);
	io_loop_free(loop);
	free(pem);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_failed_allocation_ends_a_handshake_and_nothing_else)};
	if (!CRYPTO_set_mem_functions(allocate, reallocate, release)) return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
