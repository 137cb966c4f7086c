/* certificates.h - a set of certificates and the names that they are for. It does not change once it is made; who uses
 * it holds a reference, which any thread may take and give back. */
#ifndef GATLING_TLS_CERTIFICATES_H
#define GATLING_TLS_CERTIFICATES_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "gatling/base/slice.h"

enum {
	CERTIFICATE_ERROR = 512, /* bytes of a text about what is wrong */
	CERTIFICATE_WARN_S = 14 * 24 * 60 * 60
};

struct certificates;

/* An empty set. client_ca: as of tls_context_new(). NULL: ENOMEM. */
struct certificates *certificates_new(const char *client_ca);
void certificates_retain(struct certificates *set);
void certificates_release(struct certificates *set); /* NULL is allowed */

struct certificate_source {
	const char *origin; /* the file */
	const char *pem;    /* what is in it, NUL-terminated */
	const char *host;   /* a name that it is for, too; NULL: none */
	struct slice ocsp;  /* the response to staple (DER) to those that it is about, or empty */
	bool at_any_time;   /* also certificates that are expired or not valid yet */
};

/* While the set is being made: adds each private key of the source with its certificate, which has to be in it, and the
 * certificates in it that lead on from there. They are for the names of the certificate (DNS names of its
 * subjectAltName) and for the host; keys of different kinds for the same names stand side by side, wherever they come
 * from. The first that is added is the default. What is wrong with the response of OCSP is in warning
 * (CERTIFICATE_ERROR bytes), else "". 0, or -1 with a text in error: nothing of the source was added. */
int certificates_add(struct certificates *set, const struct certificate_source *source, char *error, char *warning);

/* Whether it has any from that file; or none at all. set: NULL is allowed in the first. */
bool certificates_hold(const struct certificates *set, const char *origin);
bool certificates_empty(const struct certificates *set);

/* Tells of each certificate that is not valid now, or only for less than CERTIFICATE_WARN_S, or a third of all its time
 * if that is less. */
typedef void certificates_tell(void *context, const char *origin, const char *what);
void certificates_dates(const struct certificates *set, certificates_tell *tell, void *context);

/* While the set is being made: takes all keys that came from the file `origin` over from another set. false: there were
 * none. */
bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin);

/* While the set is being made: that was all. 0, or -1: ENOMEM. */
int certificates_seal(struct certificates *set);

/* What a handshake needs: the application data (SSL_set_app_data()) of each connection with a context of a set. */
struct tls_handshaking {
	const struct certificates *certificates; /* the current set */
	bool strict_sni;                         /* refuse a server name that none of them is for */
};

/* The context for a server name: one with exactly that name, else with a wildcard in the place of its first label (RFC
 * 6125, section 6.4.3), else NULL. It lives as long as the set. */
SSL_CTX *certificates_find(const struct certificates *set, const char *name);

/* The context for all other names; of an empty set, one with which no handshake succeeds. */
SSL_CTX *certificates_default(const struct certificates *set);

#endif
