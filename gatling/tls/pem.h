/* pem.h - reads all of a text in PEM (RFC 7468). OpenSSL itself does not tell a block that it cannot read, or has no
 * memory for, from the end of the text; and making its decoder of keys takes sixteen times as long as reading one. */
#ifndef GATLING_TLS_PEM_H
#define GATLING_TLS_PEM_H

#include <openssl/x509.h>

enum {
	PEM_ERROR = 64, /* bytes of an error message */
	PEM_SHARED = 64 /* certificates that a reader remembers */
};

/* Reads many texts, which often have the same certificates of issuers: it reads the last PEM_SHARED of these once, and
 * shares them. For one thread. */
struct pem_reader;

/* Returns a reader, or NULL without memory. */
struct pem_reader *pem_reader_new(void);
void pem_reader_free(struct pem_reader *reader); /* NULL is allowed */

/* Returns how many blocks of a text (NUL-terminated) have one of the labels, which end with NULL. */
int pem_count(const char *text, const char *const *labels);

/* Returns the next private key of a text, to be freed with EVP_PKEY_free(). Returns NULL if there is none, it is
 * encrypted or cannot be read, or memory runs out. */
EVP_PKEY *pem_next_key(struct pem_reader *reader, BIO *text);

/* Returns the certificates of a text, at most `most`, to be freed with sk_X509_pop_free(). Returns NULL with a message
 * in error if there is none, one cannot be read, or memory runs out. */
STACK_OF(X509) * pem_certificates(struct pem_reader *reader, const char *text, int most, char *error);

#endif
