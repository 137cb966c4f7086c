/* certificates.h - a set of certificates, found by server name. It does not change after certificates_seal(); its users
 * hold references, which any thread may take and release. */
#ifndef GATLING_TLS_CERTIFICATES_H
#define GATLING_TLS_CERTIFICATES_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "gatling/base/slice.h"

enum {
	CERTIFICATE_ERROR = 512, /* bytes of an error message */
	CERTIFICATE_WARN_S = 14 * 24 * 60 * 60
};

struct certificates;

/* Returns an empty set, with a reference to the context (tls_context_new()) that its connections are to have. NULL:
 * ENOMEM. */
struct certificates *certificates_new(SSL_CTX *context);
void certificates_retain(struct certificates *set);
void certificates_release(struct certificates *set); /* NULL is allowed */

struct certificate_source {
	const char *origin; /* the file */
	const char *pem;    /* its text, NUL-terminated */
	const char *host;   /* a further name for the certificates; NULL: none */
	struct slice ocsp;  /* the response to staple (DER) to the certificates that it is about, or empty */
	/* The set in use. If it has certificates from the file, only valid ones may replace them. NULL: none. */
	const struct certificates *last;
};

/* Before certificates_seal(): adds each private key of the source with its certificate, which must be in the source,
 * too, and the intermediate certificates. They serve the names of the certificate (DNS names of its subjectAltName) and
 * the host. Keys of different kinds may serve the same names, whatever file they are from. The first that is added is
 * the default. Writes an error about the OCSP response, or "", to warning (CERTIFICATE_ERROR bytes). Returns 0, or -1
 * with a message in error: nothing was added. */
int certificates_add(struct certificates *set, const struct certificate_source *source, char *error, char *warning);

bool certificates_empty(const struct certificates *set);

/* Calls report() for each certificate that is not valid now, or expires within CERTIFICATE_WARN_S, or within a third of
 * its lifetime if that is shorter, or lacks that of its issuer. */
void certificates_report(const struct certificates *set, void (*report)(const char *origin, const char *what));

/* Before certificates_seal(): copies all keys from the file `origin` from another set (NULL: an empty
 * one). Returns false if it has none. */
bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin);

/* Completes the set. Returns 0, or -1: ENOMEM. */
int certificates_seal(struct certificates *set);

/* Returns whether a certificate of the set, valid now, is for a name (NUL-terminated), found as for a handshake. */
bool certificates_cover(const struct certificates *set, const char *name);

/* Returns the context for all connections. */
SSL_CTX *certificates_context(const struct certificates *set);

/* The application data (SSL_set_app_data()) that each connection must have. */
struct tls_handshaking {
	const struct certificates *certificates; /* the current set */

	bool strict_sni; /* refuse server names that no certificate covers */
};

/* The callback of SSL_CTX_set_tlsext_servername_callback(). It chooses the keys for the server name: those of a
 * certificate with exactly that name, else of one with a wildcard in place of its first label (RFC 6125, section
 * 6.4.3), else the default. With an empty set no handshake succeeds. */
int certificates_choose(SSL *ssl, int *alert, void *unused);

#endif
