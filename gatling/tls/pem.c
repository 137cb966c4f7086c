/* pem.c - see pem.h. */
#include "gatling/tls/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "gatling/base/lines.h"

int pem_no_password(char *buffer, int size, int writing, void *unused) {
	(void)buffer, (void)size, (void)writing, (void)unused;
	return -1;
}

/* Returns the label of the next block, or an absent slice. *text becomes the end of the label. */
static struct slice next_label(const char **text) {
	static const char begin[] = "-----BEGIN ", dashes[] = "-----";
	for (const char *at = *text, *to; (at = strstr(at, begin)); at++) {
		const char *label = at + strlen(begin);
		if (at > *text && at[-1] != '\n') continue;
		if (!(to = strstr(label, dashes))) break;
		*text = to;
		return (struct slice){.at = label, .length = (size_t)(to - label)};
	}
	return (struct slice){0};
}

int pem_count(const char *text, const char *const *labels) {
	int count = 0;
	text = lines_of(slice_of(text)).rest.at;
	for (struct slice label; (label = next_label(&text)).at;)
		for (const char *const *known = labels; *known; known++) count += slice_equal(label, slice_of(*known));
	return count;
}

/* Returns the next certificate, or NULL if it, its public key or an extension cannot be read. OpenSSL parses key and
 * extensions once; if memory runs out then, the certificate stays without a key, or invalid. */
static X509 *next_certificate(BIO *bio) {
	X509 *next = PEM_read_bio_X509(bio, NULL, pem_no_password, NULL);
	if (!next || (X509_get0_pubkey(next) && X509_check_purpose(next, -1, 0) == 1)) return next;
	X509_free(next);
	return NULL;
}

STACK_OF(X509) * pem_certificates(const char *text, int most, char *error) {
	static const char *const labels[] = {"CERTIFICATE", "X509 CERTIFICATE", NULL};
	int count = pem_count(text, labels), number = 0;
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
