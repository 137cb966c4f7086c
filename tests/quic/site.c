/* site.c - see site.h. */
#include "tests/quic/site.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/tls/tls_context.h"
#include "tests/quic/require.h"

enum { NAMES = 100 };

char server_content[SERVER_LARGE_LENGTH];

static char directory[64];

/* --- a certificate --- */

/* Returns names for a certificate, so many that it does not fit into three datagrams. */
static X509_EXTENSION *make_names(void) {
	char names[NAMES * 64], *at = stpcpy(names, "DNS:localhost");
	for (int i = 0; i < NAMES; i++) at += sprintf(at, ",DNS:another-name-of-this-server-%02d.example", i);
	return X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
}

static char *make_pem(void) {
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	BIO *out = BIO_new(BIO_s_mem());
	char *text, *copy;
	require(key && out && x && X509_set_version(x, X509_VERSION_3) && X509_set_pubkey(x, key));
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_EXTENSION *names = make_names();
	require(names && X509_add_ext(x, names, -1) && X509_sign(x, key, EVP_sha256()));
	require(PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) && PEM_write_bio_X509(out, x));
	const long length = BIO_get_mem_data(out, &text);
	copy = strndup(text, (size_t)length);
	require(copy);
	X509_EXTENSION_free(names);
	X509_free(x);
	EVP_PKEY_free(key);
	BIO_free(out);
	return copy;
}

struct certificates *site_certificates(void) {
	char error[CERTIFICATE_ERROR], *pem = make_pem();
	const struct certificate_source source = {.origin = "x", .pem = pem, .host = "localhost"};
	SSL_CTX *tls = tls_context_new(NULL);
	require(tls);
	struct certificates *certificates = certificates_new(tls);
	require(certificates && certificates_add(certificates, &source, error) == 0);
	require(certificates_seal(certificates) == 0);
	SSL_CTX_free(tls);
	free(pem);
	return certificates;
}

/* --- files --- */

static void write_file(int root, const char *path, size_t length) {
	const int file = openat(root, path + 1, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	require(file != -1 && write(file, server_content, length) == (ssize_t)length);
	close(file);
}

int site_open(void) {
	const int root = open(directory, O_RDONLY | O_DIRECTORY);
	require(root != -1);
	return root;
}

void site_make(void) {
	const char *top = getenv("TMPDIR");
	snprintf(directory, sizeof directory, "%.40s/gatling-quic-XXXXXX", top ? top : "/tmp");
	require(mkdtemp(directory) && chmod(directory, 0755) == 0);
	const int root = site_open();
	for (size_t i = 0; i < sizeof server_content; i++) server_content[i] = (char)(i * 7 + i / 251);
	write_file(root, SERVER_SMALL, SERVER_SMALL_LENGTH);
	write_file(root, SERVER_LARGE, SERVER_LARGE_LENGTH);
	close(root);
}

void site_remove(void) {
	const int root = site_open();
	(void)unlinkat(root, &SERVER_SMALL[1], 0);
	(void)unlinkat(root, &SERVER_LARGE[1], 0);
	close(root);
	(void)rmdir(directory);
}

void server_truncate(size_t length) {
	char path[sizeof directory + sizeof SERVER_LARGE];
	snprintf(path, sizeof path, "%s%s", directory, SERVER_LARGE);
	require(truncate(path, (off_t)length) == 0);
}
