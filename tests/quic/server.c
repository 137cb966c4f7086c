/* server.c - see server.h. */
#include "tests/quic/server.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/workspace.h"
#include "gatling/status/counters.h"
#include "gatling/tls/tls_context.h"
#include "tests/quic/network.h"
#include "tests/quic/require.h"

enum { JOB_MS = 10000, CACHED = 10, OPEN = 20, NAMES = 100, USED_MAX = 8 };

char server_content[SERVER_LARGE_LENGTH];

static const struct site_options site_options = {.cache = 1 << 20};
static struct conn_options options;
static struct counters counted;
static struct conn_context context;
static struct certificates *certificates;
static struct quic *quic;
static struct datagram_sockets sockets;
static char directory[64];

/* --- a certificate and files --- */

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

static void make_certificates(void) {
	char error[CERTIFICATE_ERROR], *pem = make_pem();
	const struct certificate_source source = {.origin = "x", .pem = pem, .host = "localhost"};
	SSL_CTX *tls = tls_context_new(NULL);
	require(tls);
	certificates = certificates_new(tls);
	require(certificates && certificates_add(certificates, &source, error) == 0);
	require(certificates_seal(certificates) == 0);
	SSL_CTX_free(tls);
	free(pem);
}

static void write_file(int root, const char *path, size_t length) {
	const int file = openat(root, path + 1, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	require(file != -1 && write(file, server_content, length) == (ssize_t)length);
	close(file);
}

static int make_root(void) {
	const char *top = getenv("TMPDIR");
	snprintf(directory, sizeof directory, "%.40s/gatling-quic-XXXXXX", top ? top : "/tmp");
	require(mkdtemp(directory) && chmod(directory, 0755) == 0);
	const int root = open(directory, O_RDONLY | O_DIRECTORY);
	require(root != -1);
	for (size_t i = 0; i < sizeof server_content; i++) server_content[i] = (char)(i * 7 + i / 251);
	write_file(root, SERVER_SMALL, SERVER_SMALL_LENGTH);
	write_file(root, SERVER_LARGE, SERVER_LARGE_LENGTH);
	return root;
}

static void remove_root(void) {
	const int root = open(directory, O_RDONLY | O_DIRECTORY);
	(void)unlinkat(root, &SERVER_SMALL[1], 0);
	(void)unlinkat(root, &SERVER_LARGE[1], 0);
	close(root);
	(void)rmdir(directory);
}

/* --- the worker --- */

static int refuse_nobody(struct conn_context *w, const struct peer *peer) {
	(void)w, (void)peer;
	return 0;
}

void server_set_up(void) {
	counters = &counted;
	make_certificates();
	const int root = make_root();
	context = (struct conn_context){.options = &options, .connections_max = 10000, .refusal = refuse_nobody};
	context.memory_max = (size_t)64 << 20;
	context.share = CONN_SHARE_MOST;
	context.loop = io_loop_new();
	context.batches = (struct batch_pool){.loop = context.loop};
	context.exchanges =
		(struct exchange_context){.site = &context.site, .batches = &context.batches, .trust = &options.trust};
	context.http2.memory_max = BUDGET_CONNECTION;
	require(context.loop && workspace_open() == 0);
	require(site_context_open(&context.site, context.loop, root, &site_options, 1, CACHED, OPEN) == 0);
	batch_pool_set_time(&context.batches, time(NULL));
}

void server_tear_down(void) {
	response_batch_free_spares(&context.batches);
	site_context_close(&context.site);
	io_loop_free(context.loop);
	certificates_release(certificates);
	remove_root();
}

void server_open(void) {
	const union io_address any = {.ipv4 = {.sin_family = AF_INET}};
	const int fd = quic_open_socket(&any.any, sizeof any.ipv4, false);
	options = (struct conn_options){0};
	sockets = (struct datagram_sockets)DATAGRAM_SOCKETS_NONE;
	require(fd != -1 && sockets_add(&sockets.udp, fd, true, 1) == 0 && datagram_sockets_open(&sockets, 1) == 0);
	sockets.udp.at[0].places = 1;
	network_open(fd);
	quic = quic_new(&context, &sockets, 0, 1);
	require(quic);
	quic->bbr = false; /* whatever this machine prefers */
	quic_use_certificates(quic, certificates, false);
	quic_use_fields(quic, SLICE("Server: gatling\r\n"));
}

/* Takes a descriptor out of the loop, but leaves it open. */
static void release(int fd) {
	const int copy = dup(fd);
	require(copy != -1);
	io_close(context.loop, fd);
	require(dup2(copy, fd) == fd);
	close(copy);
}

void server_close(void) {
	int used[USED_MAX];
	require(datagram_sockets_most(&sockets) <= USED_MAX);
	quic_free(quic);
	for (unsigned n = datagram_sockets_used(&sockets, 0, 1, used); n--;)
		if (io_cookie(context.loop, used[n])) release(used[n]);
	datagram_sockets_close(&sockets);
	network_close();
	require(!context.connections && !context.quic_memory);
}

void server_truncate(size_t length) {
	char path[sizeof directory + sizeof SERVER_LARGE];
	snprintf(path, sizeof path, "%s%s", directory, SERVER_LARGE);
	require(truncate(path, (off_t)length) == 0);
}

struct quic *server_quic(void) {
	return quic;
}
struct conn_options *server_options(void) {
	return &options;
}

/* Waits for threads that find and read files: their time is none here. */
static void finish_jobs(void) {
	for (int i = 0; site_context_jobs(&context.site); i++) {
		const struct timespec millisecond = {.tv_nsec = 1000000};
		require(i < JOB_MS);
		(void)nanosleep(&millisecond, NULL);
		require(io_wait(context.loop, 0) == 0);
		site_context_collect(&context.site);
	}
}

void server_turn(void) {
	require(io_wait(context.loop, 0) == 0);
	context.site.now_ms = io_now(context.loop);
	names_turn(context.site.names, io_now_ns(context.loop));
	while (network_has_arrived()) quic_readable(&quic->cookie[0]);
	if (quic->cookie[0].held.bytes) quic_writable(&quic->cookie[0]); /* the kernel's socket is never full */
	for (int ready; (ready = io_canwrite(context.loop)) != -1;) quic_writable(io_cookie(context.loop, ready));
	quic_turn(quic);
	if (!site_context_jobs(&context.site)) return;
	finish_jobs();
	quic_turn(quic);
}

int64_t server_next_ns(void) {
	int64_t next = quic->alarm.deadline_ns ? quic->alarm.deadline_ns : INT64_MAX;
	for (const struct quic_connection *c = quic->first; c; c = c->next)
		if (c->alarm.deadline_ns && c->alarm.deadline_ns < next) next = c->alarm.deadline_ns;
	return next;
}
