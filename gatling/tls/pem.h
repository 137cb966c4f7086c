/* pem.h - reads what a text holds in PEM (RFC 7468), and all of it: OpenSSL ends at a block that it cannot read, or has
 * no memory for, as it does at the end of the text. */
#ifndef GATLING_TLS_PEM_H
#define GATLING_TLS_PEM_H

#include <openssl/x509.h>

enum { PEM_ERROR = 64 }; /* bytes of an error message */

/* A pem_password_cb that has none. Without one OpenSSL asks for it at the terminal. */
int pem_no_password(char *buffer, int size, int writing, void *unused);

/* Returns how many blocks of a text (NUL-terminated) have one of the labels, of which the last is NULL. */
int pem_count(const char *text, const char *const *labels);

/* Returns all certificates of a text, but at most `most`; sk_X509_pop_free() frees them. Returns NULL with a message in
 * error: there is none, one cannot be read, or no memory. */
STACK_OF(X509) * pem_certificates(const char *text, int most, char *error);

#endif
