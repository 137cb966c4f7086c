/* ocsp.h - OCSP responses (RFC 6960) to staple to a certificate: only to the one that they are about, and only while
 * they are valid. */
#ifndef GATLING_TLS_OCSP_H
#define GATLING_TLS_OCSP_H

#include <openssl/x509.h>
#include <time.h>

#include "gatling/base/slice.h"

enum {
	OCSP_SKEW_S = 300,             /* allowed difference of clocks */
	OCSP_AGE_S = 7 * 24 * 60 * 60, /* after which a response without an end expires */
	OCSP_ERROR = 256               /* bytes of an error message */
};

/* Attaches a response (DER) to a certificate, if it is successful, valid and about that certificate. issuer: the
 * certificate of its issuer; if it is NULL, only the name of the issuer is compared. Returns 0, or -1 with a message in
 * error. No other thread may use the certificate yet, or attach another response. */
int ocsp_attach(X509 *certificate, const X509 *issuer, struct slice response, char *error);

/* Returns the response to staple now, which lives as long as the certificate, or an empty slice if there is none or it
 * has expired. */
struct slice ocsp_of(const X509 *certificate, time_t now);

#endif
