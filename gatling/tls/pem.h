/* pem.h - reads all of a text in PEM (RFC 7468). OpenSSL itself does not tell a block that it cannot read, or has no
 * memory for, from the end of the text. */
#ifndef GATLING_TLS_PEM_H
#define GATLING_TLS_PEM_H

#include <openssl/x509.h>

enum { PEM_ERROR = 64 }; /* bytes of an error message */

/* A pem_password_cb without a password. Without a callback, OpenSSL would ask for one at the terminal. */
int pem_no_password(char *buffer, int size, int writing, void *unused);

/* Returns how many blocks of a text (NUL-terminated) have one of the labels, which end with NULL. */
int pem_count(const char *text, const char *const *labels);

/* Returns the certificates of a text, at most `most`, to be freed with sk_X509_pop_free(). Returns NULL with a message
 * in error if there is none, one cannot be read, or memory runs out. */
STACK_OF(X509) * pem_certificates(const char *text, int most, char *error);

#endif
