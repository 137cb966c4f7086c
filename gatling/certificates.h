/* certificates.h - a set of certificates and the names that they are for. It does not change once it is made; who uses
 * it holds a reference, which any thread may take and give back. */
#ifndef GATLING_CERTIFICATES_H
#define GATLING_CERTIFICATES_H

#include <openssl/ssl.h>

#include "gatling/slice.h"

enum { CERTIFICATE_ERROR = 512 }; /* bytes of a text about what is wrong */

struct certificates;

/* An empty set. client_ca: as of tls_context_new(). NULL: ENOMEM. */
struct certificates *certificates_new(const char *client_ca);
void certificates_retain(struct certificates *set);
void certificates_release(struct certificates *set); /* NULL is allowed */

/* While the set is being made: adds each private key of a PEM text (NUL-terminated, of the file origin) with its
 * certificate, which has to be in it, and the certificates in it that lead on from there. They are for the names of the
 * certificate (DNS names of its subjectAltName) and for host, which may be NULL; keys of different kinds for the same
 * names stand side by side. The first that is added is the default. ocsp: the response to staple (DER), or empty. 0, or
 * -1 with a text in error.
 */
int certificates_add(struct certificates *set, const char *origin, const char *pem, const char *host, struct slice ocsp,
					 char *error);

/* While the set is being made: takes what came from the file `origin` over from another set. false: there was nothing.
 */
bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin);

/* While the set is being made: that was all. 0, or -1: ENOMEM. */
int certificates_seal(struct certificates *set);

/* The context for a server name: one with exactly that name, else with a wildcard in the place of its first label (RFC
 * 6125, section 6.4.3), else NULL. It lives as long as the set. */
SSL_CTX *certificates_find(const struct certificates *set, const char *name);

/* The context for all other names. */
SSL_CTX *certificates_default(const struct certificates *set);

/* The response to staple to a certificate, empty for none. It lives as long as the certificate. */
struct slice certificates_ocsp(const X509 *certificate);

#endif
