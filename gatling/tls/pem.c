/* pem.c - see pem.h. */
#include "gatling/tls/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "gatling/base/slice.h"

int pem_no_password(char *buffer, int size, int writing, void *unused) {
	(void)buffer, (void)size, (void)writing, (void)unused;
	return -1;
}

int pem_count(const char *text, const char *label) {
	static const char begin[] = "-----BEGIN ", dashes[] = "-----";
	int count = 0;
	for (const char *at = text; (at = strstr(at, begin)); at++) {
		const char *from = at + strlen(begin), *to = strstr(from, dashes);
		bool starts_line = at == text || at[-1] == '\n';
		if (!starts_line || !to) continue;
		count += slice_ends((struct slice){.at = from, .length = (size_t)(to - from)}, slice_of(label));
	}
	return count;
}

/* Returns NULL if the next certificate, its public key or an extension cannot be read. Key and extensions are parsed
 * once: without memory for that the certificate is without a key, or invalid, for ever. */
static X509 *next_certificate(BIO *bio) {
	X509 *next = PEM_read_bio_X509(bio, NULL, pem_no_password, NULL);
	if (!next || (X509_get0_pubkey(next) && X509_check_purpose(next, -1, 0) == 1)) return next;
	X509_free(next);
	return NULL;
}

STACK_OF(X509) * pem_certificates(const char *text, int most, char *error) {
	int count = pem_count(text, "CERTIFICATE"), number = 0;
	if (count > most) count = most;
	STACK_OF(X509) *all = sk_X509_new_reserve(NULL, count);
	BIO *bio = BIO_new_mem_buf(text, -1);
	X509 *next;
	if (all && bio)
		for (; number < count && (next = next_certificate(bio)); number++)
			(void)sk_X509_push(all, next); /* there is room */
	if (!all || !bio) snprintf(error, PEM_ERROR, "no memory");
	else if (!count) snprintf(error, PEM_ERROR, "there is no certificate in it (PEM)");
	else if (number < count) snprintf(error, PEM_ERROR, "certificate %d in it cannot be read (PEM)", number + 1);
	bool whole = all && bio && count && number == count;
	BIO_free(bio);
	ERR_clear_error();
	if (whole) return all;
	sk_X509_pop_free(all, X509_free);
	return NULL;
}
