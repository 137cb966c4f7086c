/* key_file.h - files that hold private keys are not served, whoever may read them. */
#ifndef GATLING_FILES_KEY_FILE_H
#define GATLING_FILES_KEY_FILE_H

#include "gatling/base/file_version.h"
#include "gatling/base/slice.h"

/* Bytes of a file that is searched for a private key; a longer one is not served. */
enum { KEY_FILE_MAX = 1024 * 1024 };

/* Returns whether the name is that of a file that may hold private keys: it ends with .pem or .key, in upper or lower
 * case, before the suffix of a precompressed or an old copy (.gz, .bak, ~). */
bool key_file_named(struct slice path);

/* Returns whether a file with such a name, and so many bytes, cannot be searched for a private key: it is too long, or
 * compressed. */
bool key_file_is_opaque(struct slice path, uint64_t size);

/* Returns whether there is a private key (PEM) in a text. */
bool key_file_has_key(struct slice text);

/* Notes the files with the keys and certificates of TLS, by file_version_hash_inode(), in place of those before: they
 * are not served under any name. Takes the array over, which comes from malloc(3), or is NULL if there are none. Only
 * the main thread may call it. */
void key_files_set_tls(uint64_t *inode, size_t count);

/* Returns whether a file is one of them. Thread-safe. */
bool key_file_is_of_tls(const struct file_version *version);

#endif
