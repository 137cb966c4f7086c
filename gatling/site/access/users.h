/* users.h - lines USER:HASH, in a file of gatling's or of Apache's. */
#ifndef GATLING_SITE_ACCESS_USERS_H
#define GATLING_SITE_ACCESS_USERS_H

#include <stdbool.h>

#include "gatling/base/slice.h"

enum { AUTH_USER_MAX = 256 /* bytes of the name of a user */ };

/* Returns whether a line is "allow ADDRESS", with any text for the address: then *address is that. */
bool users_is_allow(struct slice line, struct slice *address);

/* Returns whether a line is USER:HASH, whose hash clients must not be shown. */
bool users_is_user(struct slice line);

/* Returns what is wrong with a line USER:HASH, or NULL. Adds the kind of its hash to *kinds if that has to be measured
 * (password_cost.h). */
const char *users_check(struct slice line, unsigned *kinds);

/* Finds the hash of a user; for an unknown user that of the first one, so that checking it takes as long. Returns
 * whether the user is known. */
bool users_find(struct slice users, struct slice user, struct slice *hash);

#endif
