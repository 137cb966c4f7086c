/* pem.c - see pem.h. */
#include "gatling/tls/pem.h"

#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/lines.h"

struct pem_reader {
	OSSL_DECODER_CTX *decoder; /* of keys */
	EVP_PKEY *key;             /* that it has found; NULL: none */
	struct pem_shared {
		X509 *certificate; /* NULL: none */
		unsigned char *der;
		long length;
	} shared[PEM_SHARED];
	unsigned next; /* of these, the one that is forgotten next */
};

struct pem_reader *pem_reader_new(void) {
	struct pem_reader *r = calloc(1, sizeof *r);
	if (!r) return NULL;
	r->decoder = OSSL_DECODER_CTX_new_for_pkey(&r->key, "DER", NULL, NULL, EVP_PKEY_KEYPAIR, NULL, NULL);
	if (r->decoder) return r;
	pem_reader_free(r);
	return NULL;
}

static void forget(struct pem_shared *s) {
	X509_free(s->certificate);
	OPENSSL_free(s->der);
}

void pem_reader_free(struct pem_reader *r) {
	if (!r) return;
	for (int i = 0; i < PEM_SHARED; i++) forget(&r->shared[i]);
	OSSL_DECODER_CTX_free(r->decoder);
	free(r);
}

/* A pem_password_cb without a password. Without a callback, OpenSSL would ask for one at the terminal. */
static int no_password(char *buffer, int size, int writing, void *unused) {
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

EVP_PKEY *pem_next_key(struct pem_reader *r, BIO *text) {
	unsigned char *der = NULL;
	char *label = NULL;
	long length;
	if (!PEM_bytes_read_bio(&der, &length, &label, PEM_STRING_EVP_PKEY, text, no_password, NULL)) return NULL;
	const unsigned char *at = der;
	size_t left = (size_t)length;
	r->key = NULL;
	const bool plain = strcmp(label, PEM_STRING_PKCS8) != 0;
	if (plain && OSSL_DECODER_from_data(r->decoder, &at, &left) != 1) r->key = NULL;
	OPENSSL_clear_free(der, (size_t)length);
	OPENSSL_free(label);
	return r->key;
}

/* Returns a certificate that the reader remembers, or NULL. */
static X509 *find_shared(const struct pem_reader *r, const unsigned char *der, long length) {
	for (int i = 0; i < PEM_SHARED; i++) {
		const struct pem_shared *s = &r->shared[i];
		if (s->length == length && s->certificate && memcmp(s->der, der, (size_t)length) == 0) return s->certificate;
	}
	return NULL;
}

/* Returns a certificate, or NULL if it, its public key or an extension cannot be read. OpenSSL parses key and
 * extensions once; if memory runs out then, the certificate stays without a key, or invalid. */
static X509 *read_certificate(const unsigned char *der, long length) {
	X509 *read = d2i_X509(NULL, &der, length);
	if (!read || (X509_get0_pubkey(read) && X509_check_purpose(read, -1, 0) == 1)) return read;
	X509_free(read);
	return NULL;
}

/* Returns the next certificate, or NULL as read_certificate(). shares: it may be in other texts, too. */
static X509 *next_certificate(struct pem_reader *r, BIO *bio, bool shares) {
	unsigned char *der = NULL;
	long length;
	if (!PEM_bytes_read_bio(&der, &length, NULL, PEM_STRING_X509, bio, no_password, NULL)) return NULL;
	X509 *found = shares ? find_shared(r, der, length) : NULL;
	X509 *next = found ? found : read_certificate(der, length);
	if (next && shares && !found && X509_up_ref(next)) {
		struct pem_shared *s = &r->shared[r->next++ % PEM_SHARED];
		forget(s);
		*s = (struct pem_shared){.certificate = next, .der = der, .length = length};
		der = NULL;
	}
	if (found) X509_up_ref(found);
	OPENSSL_free(der);
	return next;
}

STACK_OF(X509) * pem_certificates(struct pem_reader *r, const char *text, int most, char *error) {
	static const char *const labels[] = {"CERTIFICATE", "X509 CERTIFICATE", NULL};
	int count = pem_count(text, labels), number = 0;
	if (count > most) count = most;
	STACK_OF(X509) *all = sk_X509_new_reserve(NULL, count);
	BIO *bio = BIO_new_mem_buf(text, -1);
	X509 *next;
	if (all && bio)
		for (; number < count && (next = next_certificate(r, bio, number > 0)); number++)
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
