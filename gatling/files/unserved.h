/* unserved.h - which files hold keys and are not served, whoever may read them; and reports, once, why an existing file
 * is not served, and what to do about it (notice.h). */
#ifndef GATLING_FILES_UNSERVED_H
#define GATLING_FILES_UNSERVED_H

#include "gatling/base/file_version.h"
#include "gatling/files/docroot.h"

enum {
	UNSERVED_REPORTS_MAX = 64,          /* of each kind, while the server runs */
	UNSERVED_KEY_FILE_MAX = 1024 * 1024 /* bytes of a file that is searched for a private key; longer: not served */
};

/* Reports why a path is not served: because of its mode, or that of a directory on the way, or because it may hold a
 * private key that cannot be found. Does not report other files of private keys, which are not meant to be read. */
void unserved_report(const struct docroot *docroot, const char *path);

/* Reports a symbolic link at path that leads out of the chroot(2) in which the server is. Returns whether there is one,
 * reported or not. false: it leads elsewhere, or that is unknown. */
bool unserved_report_link(const struct docroot *docroot, const char *path);

/* Reports that the file at path, a precompressed copy of the original, is not sent because the original is newer. */
void unserved_report_outdated(const char *path, const char *original, const struct file_version *original_version);

/* Returns whether the name is that of a file that may hold private keys: it ends with .pem or .key, in upper or lower
 * case, before the suffix of a precompressed or an old copy (.gz, .bak, ~). */
bool unserved_is_key(struct slice path);

/* Returns whether a file with such a name, and so many bytes, cannot be searched for a private key: it is too long, or
 * compressed. */
bool unserved_is_opaque(struct slice path, uint64_t size);

/* Returns whether there is a private key (PEM) in a text. */
bool unserved_has_key(struct slice text);

/* Notes the files with the keys and certificates of TLS, by file_version_hash_inode(), in place of those before: they
 * are not served under any name. Takes the array over, which comes from malloc(3), or is NULL if there are none. Only
 * the main thread may call it. */
void unserved_set_tls_files(uint64_t *inode, size_t count);

/* Returns whether a file is one of them. Thread-safe. */
bool unserved_is_tls_file(const struct file_version *version);

#endif
