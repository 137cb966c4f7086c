/* certificates.h - a set of certificates, found by server name. It does not change after certificates_seal(); its users
 * hold references, which any thread may take and release. */
#ifndef GATLING_TLS_CERTIFICATES_H
#define GATLING_TLS_CERTIFICATES_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "gatling/base/peer.h"
#include "gatling/base/slice.h"

enum {
	CERTIFICATE_ERROR = 512, /* bytes of an error message */
	CERTIFICATE_WARN_S = 14 * 24 * 60 * 60
};

struct certificates;

/* Returns an empty set, or NULL if memory runs out. The set takes a reference to the context (tls_context_new()), which
 * is used for its connections. */
struct certificates *certificates_new(SSL_CTX *context);
void certificates_retain(struct certificates *set);
void certificates_release(struct certificates *set); /* NULL is allowed */

struct certificate_source {
	const char *origin; /* the file */
	const char *pem;    /* its text, NUL-terminated */
	const char *host;   /* another name for the certificates, or NULL */
	uint64_t state;     /* of the file, see certificates_keep() */
	/* The set in use, or NULL. If it has certificates from this file, only valid ones may replace them. */
	const struct certificates *last;
};

/* Adds each private key of the source with its certificate, which must be in the source, too, and the intermediate
 * certificates. They are used for the DNS names and addresses in the certificate (subjectAltName) and for host. Keys of
 * different types may be used for the same names, even if they are from different files. The first one that is added is
 * the default. Must be called before certificates_seal(). Returns 0, or -1 with a message in error (CERTIFICATE_ERROR
 * bytes); then nothing was added. */
int certificates_add(struct certificates *set, const struct certificate_source *source, char *error);

bool certificates_empty(const struct certificates *set);

/* Calls report() for each certificate that is not valid now, expires within CERTIFICATE_WARN_S (or a third of its
 * lifetime, if that is shorter), or whose issuer's certificate is not valid or missing. */
void certificates_report(const struct certificates *set, void (*report)(const char *origin, const char *what));

/* Shares all keys from the file `origin` with the set `last` (NULL: an empty one): *state has to be that of the file,
 * unless state is NULL. Must be called before certificates_seal(). Returns false if there are none, or no memory for
 * all. */
bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin,
					   const uint64_t *state);

/* Completes the set. Returns 0, or -1 if memory runs out. */
int certificates_seal(struct certificates *set);

/* Returns whether a certificate has expired or become valid since certificates_seal(), so that another one may be the
 * best of its names. */
bool certificates_outdated(const struct certificates *set);

/* Returns whether the set has a certificate, valid now, for the host of a URL (NUL-terminated): a name, found as in a
 * handshake, or an address. */
bool certificates_cover(const struct certificates *set, const char *name);

/* Returns the context for all connections. */
SSL_CTX *certificates_context(const struct certificates *set);

/* What each connection needs for its handshake. */
struct tls_handshaking {
	const struct certificates *certificates; /* the current set */

	bool strict_sni; /* refuse server names that no certificate covers */
	bool quic;       /* the connection is one of QUIC, and speaks HTTP/3 */
	/* Finds the address that the client has connected to. Returns false if there is none, as with a unix socket. */
	bool (*local)(const SSL *ssl, struct peer *address);
};

/* Reserves its place in every SSL, in the thread that makes the context. Returns false without memory. */
bool tls_reserve_handshaking(void);

/* Sets it, for the functions that OpenSSL calls. It must outlive the connection. Returns false without memory. */
bool tls_set_handshaking(SSL *ssl, const struct tls_handshaking *handshaking);
const struct tls_handshaking *tls_handshaking_of(const SSL *ssl);

/* Chooses the keys for the server name: those of a certificate with exactly that name, otherwise of one with a wildcard
 * in place of the first label (RFC 6125, section 6.4.3), otherwise the default. A client that names no server, as one
 * that was given an address (RFC 6066, section 3), gets those of a certificate with the local address; or if that is
 * not public, so that it has been translated, of the first with any address. With an empty set no handshake succeeds.
 * For SSL_CTX_set_tlsext_servername_callback(). */
int certificates_choose(SSL *ssl, int *alert, void *unused);

#endif
