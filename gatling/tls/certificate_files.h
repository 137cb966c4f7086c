/* certificate_files.h - where certificates come from, and what is done when the files change. Belongs to the main
 * thread, but for certificate_files_current(). The files, each with its keys and certificates (PEM):
 *   --cert FILE --key FILE   pairs; the first is the default
 *   DIR/server.pem           the default if there is no such pair; DIR is the root
 *   DIR/HOST.pem             for the names in it, and HOST
 *   --cert-dir DIR           of certbot: DIR/NAME/fullchain.pem with DIR/NAME/privkey.pem
 * A response of OCSP to staple (DER) is the same name with ".ocsp" behind it. */
#ifndef GATLING_TLS_CERTIFICATE_FILES_H
#define GATLING_TLS_CERTIFICATE_FILES_H

#include "gatling/base/opener.h"
#include "gatling/tls/certificates.h"

enum {
	CERTIFICATE_FILE_MAX = 1024 * 1024, /* bytes of a file */
	CERTIFICATE_FILES_MAX = 65536,      /* files */
	CERTIFICATE_RETRY_S = 60,           /* after which what was wrong is tried again */
	CERTIFICATE_CHECK_S = 1             /* between two calls of certificate_files_refresh() */
};

enum { CERTS_MAX = 64 }; /* --cert */

enum https {
	HTTPS_TRY, /* if there is a certificate, and the port is free */
	HTTPS_ON,
	HTTPS_OFF
};

struct certificate_options {
	enum https https;
	const char *cert[CERTS_MAX], *key[CERTS_MAX]; /* a key of NULL: it is in the same file */
	unsigned certs;
	const char *cert_dir, *client_ca; /* NULL: none */
};

struct certificate_files;

/* Adds the directories of the files to the opener, before that is started, so that they are found after a chroot, too;
 * reads what never changes (--client-ca). *files becomes NULL when HTTPS is switched off. 0, or -1 after a line about
 * what is wrong. */
int certificate_files_new(const struct certificate_options *options, const char *root, struct opener *opener,
						  struct certificate_files **files);
void certificate_files_free(struct certificate_files *files); /* NULL is allowed; before opener_free() */

/* Looks which of them there are. *files is freed and becomes NULL when HTTPS is not asked for and no certificate is
 * there. */
void certificate_files_find(const struct certificate_options *options, struct certificate_files **files);

/* Loads them all for the first time. What is wrong with one is said, and the others are used; a certificate that is not
 * valid now is better than none. 0, or -1 after a line: no memory. */
int certificate_files_load(struct certificate_files *files);

/* Loads them all anew if something has changed, and not since the last call: who replaces files has finished. true:
 * others are current. What is wrong with a file is said once, and its last good state stays in use. Once a day it is
 * said which of them expire soon. */
bool certificate_files_refresh(struct certificate_files *files);

/* Today's, with a reference for the caller. Any thread. */
struct certificates *certificate_files_current(struct certificate_files *files);

#endif
