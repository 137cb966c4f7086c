/* tls.c - see tls.h. */
#include "bench/httpbench/transport/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/platform.h"

/* As it is offered, with its length before it; and as it is called. */
static const struct {
	const char *offered, *name;
} protocols[] = {
	[TLS_HTTP1] = {"\x08http/1.1", "HTTP/1.1"}, [TLS_HTTP2] = {"\x02h2", "HTTP/2"}, [TLS_HTTP3] = {"\x02h3", "HTTP/3"}};

struct tls {
	SSL_CTX *context;
	const char *host;
	enum tls_protocol protocol;
	bool by_name;         /* the host is a name, not an address */
	SSL_SESSION *session; /* offered to the server next; NULL: none */
};

/* Keeps a session that can be resumed. With TLS 1.3 OpenSSL calls this a while after the handshake. */
static int keep_session(SSL *stream, SSL_SESSION *session) {
	struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(stream));
	SSL_SESSION_free(tls->session);
	tls->session = session;
	return 1; /* the reference is now ours */
}

static bool is_address(const char *host) {
	unsigned char address[16];
	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static bool set_up(struct tls *tls, const struct tls_options *options) {
	const char *offered = protocols[options->protocol].offered;
	SSL_CTX *context = tls->context;
	SSL_CTX_set_app_data(context, tls);
	/* the rest of a write may come from another address, in other parts */
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* thousands are idle */
	SSL_CTX_set_read_ahead(context, 1);                  /* reads a record's head and body in one read(2) */
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	if (options->resume) {
		SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
		SSL_CTX_sess_set_new_cb(context, keep_session);
	}
	SSL_CTX_set_verify(context, options->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	return (options->insecure || SSL_CTX_set_default_verify_paths(context) == 1) &&
		   (options->protocol != TLS_HTTP3 || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1) &&
		   SSL_CTX_set_alpn_protos(context, (const unsigned char *)offered, (unsigned)strlen(offered)) == 0;
}

struct tls *tls_new(const struct tls_options *options, const char *host) {
	struct tls *tls = calloc(1, sizeof *tls);
	if (!tls) return NULL;
	tls->host = host;
	tls->protocol = options->protocol;
	tls->by_name = !is_address(host);
	tls->context = SSL_CTX_new(TLS_client_method());
	if (tls->context && set_up(tls, options)) return tls;
	tls_free(tls);
	return NULL;
}

void tls_free(struct tls *tls) {
	if (!tls) return;
	SSL_SESSION_free(tls->session);
	SSL_CTX_free(tls->context);
	free(tls);
}

tls_stream *tls_open(struct tls *tls, int fd) {
	SSL *stream = SSL_new(tls->context);
	if (!stream) return NULL;
	SSL_set_connect_state(stream);
	bool named = tls->by_name
					 ? SSL_set_tlsext_host_name(stream, tls->host) == 1 && SSL_set1_host(stream, tls->host) == 1
					 : X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(stream), tls->host) == 1;
	if (named && (fd == TLS_NO_DESCRIPTOR || SSL_set_fd(stream, fd) == 1) &&
		(!tls->session || SSL_set_session(stream, tls->session) == 1))
		return stream;
	SSL_free(stream);
	return NULL;
}

/* Determines why a call failed. Watches the descriptor and sets EAGAIN, or sets another errno. Returns -1, or 0 at the
 * end of input. */
static int outcome(io_loop *loop, SSL *stream, int result) {
	int error = errno;
	switch (SSL_get_error(stream, result)) {
	case SSL_ERROR_WANT_READ: error = io_eagain_read(loop, SSL_get_fd(stream)) == 0 ? EAGAIN : errno; break;
	case SSL_ERROR_WANT_WRITE: error = io_eagain_write(loop, SSL_get_fd(stream)) == 0 ? EAGAIN : errno; break;
	case SSL_ERROR_ZERO_RETURN: return 0;
	case SSL_ERROR_SYSCALL:
		if (!error) error = ENODATA;
		break;
	default: error = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? ENODATA : EPROTO;
	}
	errno = error;
	return -1;
}

/* Clears the errors that outcome() reads, so that they are those of the next call. */
static void begin(void) {
	ERR_clear_error();
	errno = 0;
}

static const struct tls *tls_of(const SSL *stream) { return SSL_CTX_get_app_data(SSL_get_SSL_CTX(stream)); }

bool tls_agreed(const tls_stream *stream) {
	const enum tls_protocol required = tls_of(stream)->protocol;
	const char *offered = protocols[required].offered + 1;
	const unsigned char *protocol;
	unsigned length;
	SSL_get0_alpn_selected(stream, &protocol, &length);
	return required == TLS_HTTP1 || (length == strlen(offered) && memcmp(protocol, offered, length) == 0);
}

int tls_handshake(io_loop *loop, tls_stream *stream) {
	int fd = SSL_get_fd(stream);
	begin();
	int result = SSL_do_handshake(stream);
	if (result == 1 && tls_agreed(stream)) return 0;
	if (result == 1) {
		errno = EPROTO;
		return -1;
	}
	if (outcome(loop, stream, result) == 0) errno = ENODATA;
	if (errno != EAGAIN) return -1;
	bool writes = SSL_want_write(stream);
	if (writes) io_dontwantread(loop, fd);
	else io_dontwantwrite(loop, fd);
	if ((writes ? io_wantwrite(loop, fd) : io_wantread(loop, fd)) == 0) errno = EAGAIN;
	return -1;
}

ssize_t tls_tryread(io_loop *loop, tls_stream *stream, void *buffer, size_t length) {
	size_t have = 0, n;
	/* reads all records that are in memory; there is rarely more input */
	while (have < length && (!have || SSL_has_pending(stream))) {
		begin();
		if (SSL_read_ex(stream, (char *)buffer + have, length - have, &n) != 1) {
			int result = outcome(loop, stream, 0);
			return have ? (ssize_t)have : result; /* an error will occur again */
		}
		have += n;
	}
	return (ssize_t)have;
}

ssize_t tls_trywritev(io_loop *loop, tls_stream *stream, const struct iovec *part, int parts) {
	size_t sent = 0, n;
	for (int i = 0; i < parts; i++) {
		begin();
		if (SSL_write_ex(stream, part[i].iov_base, part[i].iov_len, &n) != 1) {
			int result = outcome(loop, stream, 0);
			if (result == 0) { /* the server has closed its side */
				errno = EPIPE;
				result = -1;
			}
			return sent ? (ssize_t)sent : result;
		}
		sent += n;
		if (n < part[i].iov_len) break;
	}
	return (ssize_t)sent;
}

void tls_close(tls_stream *stream, bool sound) {
	if (!stream) return;
	ERR_clear_error();
	if (sound && SSL_is_init_finished(stream)) (void)SSL_shutdown(stream);
	SSL_free(stream);
}

bool tls_resumed(const tls_stream *stream) { return SSL_session_reused(stream); }

void tls_describe(const tls_stream *stream, char *text) {
	snprintf(text, TLS_TEXT, "%s %s", SSL_get_version(stream), SSL_get_cipher_name(stream));
}

void tls_explain(const tls_stream *stream, char *text) {
	long verified = SSL_get_verify_result(stream);
	unsigned long error = ERR_peek_error();
	const char *reason =
		ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING ? NULL : ERR_reason_error_string(error);
	if (verified != X509_V_OK && SSL_get_verify_mode(stream) != SSL_VERIFY_NONE)
		snprintf(text, TLS_TEXT, "the certificate: %s", X509_verify_cert_error_string(verified));
	else if (SSL_is_init_finished(stream) && !tls_agreed(stream))
		snprintf(text, TLS_TEXT, "the server does not speak %s (it has not agreed to %s by ALPN)",
				 protocols[tls_of(stream)->protocol].name, protocols[tls_of(stream)->protocol].offered + 1);
	else snprintf(text, TLS_TEXT, "%s", reason ? reason : "the connection ended in the handshake");
}
