/* tls.h - TLS for a client's connections, by OpenSSL, over descriptors of a loop, or for QUIC. Each thread has a
 * struct tls. */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "io/io.h"

enum {
	TLS_TEXT = 128,
	TLS_NO_DESCRIPTOR = -1 /* QUIC carries it */
};

/* What is offered by ALPN; unless the server agrees to one of the last two, the handshake fails. */
enum tls_protocol { TLS_HTTP1, TLS_HTTP2, TLS_HTTP3 };

struct tls_options {
	bool insecure; /* accept any certificate */
	bool resume;   /* offer the session of an earlier connection */
	enum tls_protocol protocol;
};

struct tls;

/* The client's end of a connection. */
typedef struct ssl_st tls_stream;

/* Prepares for connections to a host, which is a name or an address. Its certificate must be for this host, from an
 * authority that the system (or SSL_CERT_FILE) trusts. Returns NULL if there is no memory, or OpenSSL fails. */
struct tls *tls_new(const struct tls_options *options, const char *host);
void tls_free(struct tls *tls);

/* Starts TLS on an established connection, or for QUIC, which sets what else it needs. Returns NULL without memory. */
tls_stream *tls_open(struct tls *tls, int fd);

/* Continues the handshake. Returns 0 when it is complete, or -1. EAGAIN: fd is watched, and it must be called again
 * when fd is ready. Any other errno: it has failed. */
int tls_handshake(io_loop *loop, tls_stream *stream);

/* Do what io_tryread() and io_trywritev() do, after the handshake. close_notify ends the input (RFC 8446, section 6.1).
 * Other errors are ENODATA: the connection ended without it; EPROTO: a malformed record. */
ssize_t tls_tryread(io_loop *loop, tls_stream *stream, void *buffer, size_t length);
ssize_t tls_trywritev(io_loop *loop, tls_stream *stream, const struct iovec *part, int parts);

/* Frees the stream, but does not close its descriptor; if the connection is sound, sends close_notify first. NULL is
 * allowed. */
void tls_close(tls_stream *stream, bool sound);

/* Returns whether the server has agreed to a protocol, if this is required. */
bool tls_agreed(const tls_stream *stream);

bool tls_resumed(const tls_stream *stream);

/* Writes the version and the cipher of a completed handshake to text[TLS_TEXT]. */
void tls_describe(const tls_stream *stream, char *text);

/* Writes the reason why this thread's last call failed to text[TLS_TEXT]. */
void tls_explain(const tls_stream *stream, char *text);

#endif
