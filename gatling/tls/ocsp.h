/* ocsp.h - responses of OCSP (RFC 6960) to be stapled to a certificate: only to the one that they are for, and only as
 * long as they are good. */
#ifndef GATLING_TLS_OCSP_H
#define GATLING_TLS_OCSP_H

#include <openssl/x509.h>
#include <time.h>

#include "gatling/base/slice.h"

enum {
	OCSP_SKEW_S = 300,             /* that clocks may differ */
	OCSP_AGE_S = 7 * 24 * 60 * 60, /* after which one that says no end is not current any more */
	OCSP_ERROR = 256               /* bytes of a text about what is wrong */
};

/* Keeps a response (DER) with a certificate, if it is successful, current and about it. issuer: its issuer's
 * certificate, NULL: not known, then the name of the issuer has to do. 0; or -1 with a text in error: it is not kept.
 * The same certificate object must not be in use by another thread yet. */
int ocsp_attach(X509 *certificate, const X509 *issuer, struct slice response, char *error);

/* The response to staple now; empty: none, or it is not current any more. It lives as long as the certificate. */
struct slice ocsp_of(const X509 *certificate, time_t now);

#endif
