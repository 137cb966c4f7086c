/* tls_client.h - the client's side of TLS, for connections to upstreams: the server has to be the one that was named,
 * by a certificate of an authority that is trusted. TLS 1.2 and 1.3, with the protocol http/1.1 (RFC 7301).
 *
 * As io_tryread() and io_trywrite() do, these functions note when a socket has no input or no room left. A record is
 * read only as it is wanted, its header first: as long as OpenSSL has something to give, the socket counts as readable.
 * What is no content, such as a ticket, is read in pieces, so that no upstream can keep a worker. */
#ifndef GATLING_TLS_TLS_CLIENT_H
#define GATLING_TLS_TLS_CLIENT_H

#include <openssl/ssl.h>

#include "gatling/base/slice.h"
#include "io/io.h"

enum {
	TLS_CLIENT_MEMORY = 64 * 1024, /* bytes that OpenSSL holds for a connection, about: 24 KB, and 10 times the */
	TLS_CLIENT_CHAIN = 16 * 1024,  /* bytes of the certificates of a server, of which there may be this many */
	TLS_CLIENT_STEPS = 8,          /* records without content that are read at a time */
	TLS_CLIENT_FAULT = 160         /* bytes of tls_client_fault(), with the NUL */
};

/* Returns the context for all connections of a process. authorities: the file with the certificates of those that are
 * trusted; NULL: that of the system. Returns NULL with what is wrong in *error, and the file in *at. Call it before the
 * root changes. */
SSL_CTX *tls_client_context(const char *authorities, const char **at, const char **error);

struct tls_client;

/* Begins a connection on the adopted socket fd, which the caller still owns, to a host: a name or an address, without
 * brackets. *session: the one to continue, or NULL; each new session takes its place, so it must outlive the
 * connection. Returns NULL if memory runs out. */
struct tls_client *tls_client_new(SSL_CTX *context, io_loop *loop, int fd, const char *host, SSL_SESSION **session);
void tls_client_free(struct tls_client *client); /* NULL is allowed */

/* Continues the handshake, and waits for what it needs next: io_want(), for one direction.
 * Returns 0 when it is complete, EAGAIN, or another errno: that of the socket, or EPROTO. */
int tls_client_handshake(struct tls_client *client);

/* After EPROTO: returns why the handshake has failed. */
const char *tls_client_fault(const struct tls_client *client);

/* Do what io_tryread() and io_trywrite() do. A write that has failed with EAGAIN is to be repeated with the same bytes,
 * and perhaps more. The end of the connection without a close_notify is an error, ECONNRESET. */
ssize_t tls_client_read(struct tls_client *client, void *buffer, size_t length);
ssize_t tls_client_write(struct tls_client *client, struct slice bytes);

/* After a write that has failed with EAGAIN: returns whether it waits for input, not for room. */
bool tls_client_needs_input(const struct tls_client *client);

/* Sends a close_notify, if the socket takes it at once. */
void tls_client_shut(struct tls_client *client);

#endif
