/* tls_client.c - see tls_client.h. */
#include "gatling/tls/tls_client.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/peer.h"

struct tls_client {
	SSL *ssl;
	io_loop *loop;
	int fd;
	int error;        /* the errno of the socket, or 0 */
	bool drained;     /* the socket had no input when it was read last, */
	bool needs_input; /* and a write has waited for that */
	SSL_SESSION **session;
	char fault[TLS_CLIENT_FAULT];
};

/* --- the BIO --- */

static int bio_read(BIO *bio, char *buffer, size_t length, size_t *n) {
	struct tls_client *t = BIO_get_data(bio);
	const ssize_t got = io_tryread(t->loop, t->fd, buffer, length);
	BIO_clear_retry_flags(bio);
	*n = got > 0 ? (size_t)got : 0;
	/* OpenSSL reads the rest of a record at once; if that comes behind a part of it, the part has cleared readiness */
	if (got == (ssize_t)length) io_mark_readable(t->loop, t->fd);
	t->drained = got == -1 && errno == EAGAIN;
	if (t->drained) BIO_set_retry_read(bio);
	else if (got <= 0) t->error = got == 0 ? ECONNRESET : errno;
	return got > 0;
}

static int bio_write(BIO *bio, const char *data, size_t length, size_t *n) {
	struct tls_client *t = BIO_get_data(bio);
	const ssize_t sent = io_trywrite(t->loop, t->fd, data, length);
	BIO_clear_retry_flags(bio);
	*n = sent > 0 ? (size_t)sent : 0;
	if (sent > 0) return 1;
	if (sent == -1 && errno == ENOTCONN && io_eagain_write(t->loop, t->fd) == 0) errno = EAGAIN; /* BSD, connecting */
	if (sent == -1 && errno != EAGAIN) t->error = errno;
	else BIO_set_retry_write(bio);
	return -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static bool make_method(void) {
	method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "upstream");
	return method && BIO_meth_set_read_ex(method, bio_read) && BIO_meth_set_write_ex(method, bio_write) &&
		   BIO_meth_set_ctrl(method, bio_control);
}

/* --- the context --- */

/* Returns the file with the authorities of the system, in the places where systems have it, or NULL. */
static const char *system_authorities(void) {
	static const char *const places[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
		"/etc/ssl/ca-bundle.pem",             /* SUSE */
		"/etc/ssl/cert.pem",                  /* BSD, macOS */
	};
	const char *set = getenv(X509_get_default_cert_file_env());
	if (set) return set;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (access(places[i], R_OK) == 0) return places[i];
	return NULL;
}

static int keep_session(SSL *ssl, SSL_SESSION *session) {
	const struct tls_client *t = BIO_get_data(SSL_get_rbio(ssl));
	SSL_SESSION_free(*t->session);
	*t->session = session;
	return 1; /* the reference is kept */
}

SSL_CTX *tls_client_context(const char *authorities, const char **at, const char **error) {
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());
	static const unsigned char protocols[] = "\x08http/1.1";
	*at = authorities ? authorities : system_authorities();
	*error = "there is no memory";
	if (!c || !make_method() || !SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) ||
		SSL_CTX_set_alpn_protos(c, protocols, sizeof protocols - 1) != 0) {
		SSL_CTX_free(c);
		return NULL;
	}
	if (!*at || !SSL_CTX_load_verify_file(c, *at)) {
		*error =
			*at ? "it has no certificates of authorities" : "this system has no file with certificates of authorities";
		SSL_CTX_free(c);
		ERR_clear_error();
		return NULL;
	}
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_max_cert_list(c, TLS_CLIENT_CHAIN);
	(void)SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(c, keep_session);
	return c;
}

/* --- connections --- */

/* Says who the server has to be. Only names are sent to it (RFC 6066, section 3). */
static bool expect_host(SSL *ssl, const char *host) {
	struct peer address;
	if (peer_parse(slice_of(host), &address)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

struct tls_client *tls_client_new(SSL_CTX *context, io_loop *loop, int fd, const char *host, SSL_SESSION **session) {
	struct tls_client *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	*t = (struct tls_client){.loop = loop, .fd = fd, .session = session, .ssl = SSL_new(context)};
	BIO *bio = t->ssl && expect_host(t->ssl, host) ? BIO_new(method) : NULL;
	if (!bio) {
		tls_client_free(t);
		ERR_clear_error();
		return NULL;
	}
	BIO_set_data(bio, t);
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_connect_state(t->ssl);
	if (*session) (void)SSL_set_session(t->ssl, *session);
	return t;
}

void tls_client_free(struct tls_client *t) {
	if (!t) return;
	SSL_free(t->ssl);
	free(t);
}

/* Keeps the reason of a handshake that has failed. */
static void note_fault(struct tls_client *t) {
	const long verified = SSL_get_verify_result(t->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	if (verified != X509_V_OK)
		snprintf(t->fault, sizeof t->fault, "its certificate is not trusted: %s",
				 X509_verify_cert_error_string(verified));
	else snprintf(t->fault, sizeof t->fault, "TLS: %s", reason ? reason : "the handshake has failed");
}

static bool no_memory(void) { return ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE; }

int tls_client_handshake(struct tls_client *t) {
	const int done = SSL_do_handshake(t->ssl), error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, done);
	if (error == SSL_ERROR_NONE) return 0;
	const bool reads = error == SSL_ERROR_WANT_READ;
	if (!reads && error != SSL_ERROR_WANT_WRITE) {
		const int lacking = no_memory() ? ENOMEM : EPROTO;
		if (!t->error) note_fault(t);
		ERR_clear_error();
		return t->error ? t->error : lacking;
	}
	return io_want(t->loop, t->fd, reads, !reads) == -1 ? errno : EAGAIN;
}

const char *tls_client_fault(const struct tls_client *t) { return t->fault; }

/* Returns what io_tryread() and io_trywrite() return, after a call that has moved nothing and left this error. */
static ssize_t nothing_moved(const struct tls_client *t, int error) {
	const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
	const int lacking = no_memory() ? ENOMEM : EPROTO;
	ERR_clear_error();
	if (error == SSL_ERROR_ZERO_RETURN) return 0;
	errno = waits ? EAGAIN : t->error ? t->error : lacking;
	return -1;
}

ssize_t tls_client_read(struct tls_client *t, void *buffer, size_t length) {
	size_t got = 0, n;
	int error = SSL_ERROR_NONE;
	for (unsigned steps = 0; got < length && steps < TLS_CLIENT_STEPS; steps++) {
		t->drained = false;
		for (; got < length && SSL_read_ex(t->ssl, (char *)buffer + got, length - got, &n) == 1; got += n) steps = 0;
		if (got == length) break;
		error = SSL_get_error(t->ssl, 0);
		if (error != SSL_ERROR_WANT_READ || t->drained) break;
	}
	if (!got) return nothing_moved(t, error);
	ERR_clear_error(); /* the next call finds it again */
	return (ssize_t)got;
}

ssize_t tls_client_write(struct tls_client *t, struct slice bytes) {
	size_t sent = 0, n;
	t->needs_input = false;
	while (sent < bytes.length && SSL_write_ex(t->ssl, bytes.at + sent, bytes.length - sent, &n) == 1) sent += n;
	if (sent == bytes.length) return (ssize_t)sent;
	const int error = SSL_get_error(t->ssl, 0);
	t->needs_input = error == SSL_ERROR_WANT_READ;
	if (!sent) return nothing_moved(t, error);
	ERR_clear_error();
	return (ssize_t)sent;
}

bool tls_client_needs_input(const struct tls_client *t) { return t->needs_input; }

void tls_client_shut(struct tls_client *t) {
	if (SSL_is_init_finished(t->ssl)) (void)SSL_shutdown(t->ssl);
	ERR_clear_error();
}
