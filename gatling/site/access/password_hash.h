/* password_hash.h - hashes of passwords: those of crypt(3), and two that only Apache has, which htpasswd(1) writes:
 * $apr1$ (with -m, its default) and {SHA} (with -s). */
#ifndef GATLING_SITE_ACCESS_PASSWORD_HASH_H
#define GATLING_SITE_ACCESS_PASSWORD_HASH_H

#include <stdbool.h>

#include "gatling/base/platform.h"
#include "gatling/base/slice.h"

/* Returns whether a text may be one of the two that only Apache has. */
bool password_hash_is_apaches(struct slice text);

/* Writes the hash of a password to out (PLATFORM_CRYPT_ROOM bytes), with the method and salt in setting, which may be
 * another hash. Returns false if the method is not known, or with errno ENOMEM. Thread-safe. */
bool password_hash(const char *password, const char *setting, char *out);

#endif
