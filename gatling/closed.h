/* closed.h - why something that is there is not served: said once (notice.h), with what to do about it. */
#ifndef GATLING_CLOSED_H
#define GATLING_CLOSED_H

#include "gatling/identity.h"
#include "gatling/tree.h"

enum { CLOSED_TOLD_MAX = 64 /* that a server tells of, of each kind */ };

/* Tells why a path cannot be had: its mode, or that of a directory on the way. Nothing of what holds keys (.pem, .key),
 * which is not to be had, and nothing if it can. */
void closed_tell(const struct tree *tree, const char *path);

/* Tells that the file at path is not sent for the original, which is younger, in another coding. */
void closed_tell_older(const char *path, const char *original, const struct identity *its_identity);

/* Whether that is a file of keys, by its name. */
bool closed_is_key(struct slice path);

#endif
