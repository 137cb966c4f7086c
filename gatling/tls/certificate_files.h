/* certificate_files.h - finds the files of certificates, loads them, and loads them again when they change. Only the
 * main thread may use it, except for certificate_files_current(). The files hold keys and certificates (PEM):
 *   --cert FILE --key FILE   pairs; the first is the default
 *   DIR/server.pem           the default if there is no such pair; DIR is the root
 *   DIR/HOST.pem             for HOST and the names in the certificate
 *   --cert-dir DIR           DIR/NAME/fullchain.pem and DIR/NAME/privkey.pem, as of certbot; --acme uses the same names
 */
#ifndef GATLING_TLS_CERTIFICATE_FILES_H
#define GATLING_TLS_CERTIFICATE_FILES_H

#include "gatling/broker/broker.h"
#include "gatling/tls/certificates.h"

enum {
	CERTIFICATE_FILES_MAX = 65536, /* certificates */
	CERTIFICATE_RETRY_S = 60,      /* time after which files that failed are tried again */
	CERTIFICATE_CHECK_S = 1,       /* time between two calls of certificate_files_refresh() */
	CERTIFICATE_CHECK_PART = 100,  /* looking at the files takes at most this part (1/100) of the time, */
	CERTIFICATE_PAUSE_MS = 10000,  /* or there is so much time between two looks */
	CERTIFICATE_WALK_MS = 10000    /* a look that takes longer while the server serves is given up */
};

enum { CERTS_MAX = 64 }; /* options --cert */

enum https {
	HTTPS_TRY, /* if there is a certificate, and the port is free */
	HTTPS_ON,
	HTTPS_OFF
};

struct certificate_options {
	enum https https;
	const char *cert[CERTS_MAX], *key[CERTS_MAX]; /* key NULL: the key is in the file of the certificate */
	unsigned certs;
	const char *cert_dir, *acme_dir, *client_ca; /* NULL: none */
};

struct certificate_files;

/* Adds the directories of the files to the broker, before it is started, so that a chroot does not hide them. Reads
 * --client-ca, which is not read again. *files becomes NULL if HTTPS is off. Returns 0, or -1 after printing an
 * error. */
int certificate_files_new(const struct certificate_options *options, const char *root, struct broker *broker,
						  struct certificate_files **files);
void certificate_files_free(struct certificate_files *files); /* NULL is allowed; call it before broker_free() */

/* Looks for certificates. If there are none, and HTTPS is not required, frees *files and sets it to NULL. */
void certificate_files_find(const struct certificate_options *options, struct certificate_files **files);

/* Loads all certificates for the first time. Reports those that cannot be used, and uses the others, even those that
 * are not valid now. Returns 0, or -1 after printing an error if memory runs out. */
int certificate_files_load(struct certificate_files *files);

/* Returns the first file of a certificate that could not be used so far, or NULL. */
const char *certificate_files_broken(const struct certificate_files *files);

/* Loads all certificates again if a file has changed, but not since the last call: a replacement of several files is
 * then complete. Returns whether there is a new current set. Reports errors in a file once, and keeps using its last
 * good version. Reports once a day which certificates expire soon. */
bool certificate_files_refresh(struct certificate_files *files);

/* Returns the current set, with a reference for the caller. Thread-safe. */
struct certificates *certificate_files_current(struct certificate_files *files);

#endif
