/* ocsp.c - see ocsp.h. A response is stored as application data of its certificate. */
#include "gatling/tls/ocsp.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct ocsp_response {
	time_t until;
	size_t length;
	char response[];
};

static void free_response(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long argument, void *pointer) {
	(void)parent, (void)all, (void)index, (void)argument, (void)pointer;
	free(data);
}

/* The index of the application data, or -1 if no response has been attached yet. */
static atomic_int data_index = -1;

static int fail(char *error, const char *what) {
	snprintf(error, OCSP_ERROR, "%s", what);
	return -1;
}

/* Returns whether the ID is that of the certificate: it has the serial number, and hashes of the issuer's name and key
 * (RFC 6960, section 4.1.1). issuer may be NULL. */
static bool identifies(const OCSP_CERTID *id, const X509 *certificate, const X509 *issuer) {
	ASN1_OCTET_STRING *name, *key, *own_name, *own_key;
	ASN1_INTEGER *serial, *own_serial;
	ASN1_OBJECT *algorithm;
	if (!OCSP_id_get0_info(&name, &algorithm, &key, &serial, (OCSP_CERTID *)(uintptr_t)id)) return false;
	const EVP_MD *digest = EVP_get_digestbyobj(algorithm);
	/* without the issuer, own_key is not used */
	OCSP_CERTID *own = digest ? OCSP_cert_to_id(digest, certificate, issuer ? issuer : certificate) : NULL;
	bool same = own && OCSP_id_get0_info(&own_name, NULL, &own_key, &own_serial, own) &&
				ASN1_INTEGER_cmp(serial, own_serial) == 0 && ASN1_OCTET_STRING_cmp(name, own_name) == 0 &&
				(!issuer || ASN1_OCTET_STRING_cmp(key, own_key) == 0);
	OCSP_CERTID_free(own);
	return same;
}

static bool to_time(const ASN1_GENERALIZEDTIME *text, time_t *time) {
	struct tm tm;
	return text && ASN1_TIME_to_tm(text, &tm) && (*time = timegm(&tm)) != -1;
}

/* Writes the end of a response's validity to *until. Returns 0 if it is valid now, or -1 with a message in error. */
static int check_times(OCSP_SINGLERESP *one, time_t *until, char *error) {
	ASN1_GENERALIZEDTIME *from = NULL, *to = NULL;
	time_t begins, now = time(NULL);
	(void)OCSP_single_get0_status(one, NULL, NULL, &from, &to);
	if (!to_time(from, &begins)) return fail(error, "it does not say when it becomes valid");
	if (!to_time(to, until)) *until = begins + OCSP_AGE_S;
	if (begins > now + OCSP_SKEW_S) return fail(error, "it is not valid yet");
	return *until > now ? 0 : fail(error, "it has expired");
}

static int check(OCSP_BASICRESP *basic, const X509 *certificate, const X509 *issuer, time_t *until, char *error) {
	for (int i = 0; i < OCSP_resp_count(basic); i++) {
		OCSP_SINGLERESP *one = OCSP_resp_get0(basic, i);
		if (identifies(OCSP_SINGLERESP_get0_id(one), certificate, issuer)) return check_times(one, until, error);
	}
	return fail(error, "it is about another certificate");
}

static int attach(X509 *certificate, struct slice response, time_t until, char *error) {
	if (data_index == -1) data_index = X509_get_ex_new_index(0, NULL, NULL, NULL, free_response);
	struct ocsp_response *k = data_index == -1 ? NULL : malloc(sizeof *k + response.length);
	if (!k) return fail(error, "no memory");
	k->until = until;
	k->length = response.length;
	memcpy(k->response, response.at, response.length);
	free(X509_get_ex_data(certificate, data_index));
	if (X509_set_ex_data(certificate, data_index, k)) return 0;
	free(k);
	return fail(error, "no memory");
}

int ocsp_attach(X509 *certificate, const X509 *issuer, struct slice text, char *error) {
	const unsigned char *at = (const unsigned char *)text.at;
	OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)text.length);
	OCSP_BASICRESP *basic = NULL;
	time_t until;
	int result = -1;
	if (!response || at != (const unsigned char *)text.at + text.length) {
		(void)fail(error, "it is no response of OCSP (DER)");
	} else if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
		snprintf(error, OCSP_ERROR, "it says %s", OCSP_response_status_str(OCSP_response_status(response)));
	} else if (!(basic = OCSP_response_get1_basic(response))) {
		(void)fail(error, "it is no response of OCSP (DER)");
	} else {
		result = check(basic, certificate, issuer, &until, error);
		if (result == 0) result = attach(certificate, text, until, error);
	}
	OCSP_BASICRESP_free(basic);
	OCSP_RESPONSE_free(response);
	ERR_clear_error();
	return result;
}

struct slice ocsp_of(const X509 *certificate, time_t now) {
	const struct ocsp_response *k = certificate ? X509_get_ex_data(certificate, data_index) : NULL;
	return k && k->until > now ? (struct slice){.at = k->response, .length = k->length} : (struct slice){0};
}
