/* tls.h - TLS of a client's connections, through OpenSSL, over descriptors of a loop. One struct tls for each thread.
 */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "io/io.h"

enum { TLS_TEXT = 128 };

struct tls_options {
	bool insecure; /* accept any certificate */
	bool resume;   /* offer the session of an earlier connection */
	bool http2;    /* by ALPN: a server that does not agree to it fails the handshake; otherwise http/1.1 is offered */
};

struct tls;

/* A connection's end. */
typedef struct ssl_st tls_stream;

/* For connections to a host of that name or address, whose certificate has to be for it and from an authority that the
 * system trusts (or SSL_CERT_FILE names). NULL: no memory, or OpenSSL is not set up. */
struct tls *tls_new(const struct tls_options *options, const char *host);
void tls_free(struct tls *tls);

/* For a connection that stands. NULL: no memory. */
tls_stream *tls_open(struct tls *tls, int fd);

/* Continues the handshake. Returns 0 when it is complete; -1 with EAGAIN if it has to be called again when fd is ready,
 * for which fd is watched; -1 with another errno if it has failed. */
int tls_handshake(io_loop *loop, tls_stream *stream);

/* As io_tryread() and io_trywritev(), after the handshake. close_notify ends the input (RFC 8446, section 6.1). Errors:
 * ENODATA: the connection ended without it; EPROTO: a record was malformed; else those of the calls. */
ssize_t tls_tryread(io_loop *loop, tls_stream *stream, void *buffer, size_t length);
ssize_t tls_trywritev(io_loop *loop, tls_stream *stream, const struct iovec *part, int parts);

/* Frees the stream without closing its descriptor; sends close_notify first if the connection is sound. NULL is
 * allowed. */
void tls_close(tls_stream *stream, bool sound);

bool tls_resumed(const tls_stream *stream);

/* Writes version and cipher of a complete handshake to text[TLS_TEXT]. */
void tls_describe(const tls_stream *stream, char *text);

/* Writes why the last call of this thread failed to text[TLS_TEXT]. */
void tls_explain(const tls_stream *stream, char *text);

#endif
