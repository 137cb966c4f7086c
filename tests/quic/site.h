/* site.h - what the server of server.h serves: a directory with two files; and its certificate. */
#ifndef TESTS_QUIC_SITE_H
#define TESTS_QUIC_SITE_H

#include "gatling/tls/certificates.h"

#define SERVER_SMALL "/small.bin"
#define SERVER_LARGE "/large.bin"

enum { SERVER_SMALL_LENGTH = 100, SERVER_LARGE_LENGTH = 300 * 1000 };

/* The content of both, of which SERVER_SMALL is the beginning. */
extern char server_content[SERVER_LARGE_LENGTH];

/* Make the directory, once for a process, and remove it. */
void site_make(void);
void site_remove(void);

/* Returns a descriptor of the directory, which the caller closes. */
int site_open(void);

/* Returns a new certificate, which the caller releases. */
struct certificates *site_certificates(void);

/* Sets the length of SERVER_LARGE: an owner writes to it. */
void server_truncate(size_t length);

#endif
