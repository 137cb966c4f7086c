/* closed.h - why something that is there is not served (403): said once (notice.h), with what to do about it. */
#ifndef GATLING_CLOSED_H
#define GATLING_CLOSED_H

#include "gatling/tree.h"

enum { CLOSED_TOLD_MAX = 64 /* that a server tells of */ };

/* Tells why a path cannot be had: its mode, or that of a directory on the way. Nothing of what holds keys (.pem, .key),
 * which is not to be had, and nothing if it can. */
void closed_tell(const struct tree *tree, const char *path);

/* Whether that is a file of keys, by its name. */
bool closed_is_key(struct slice path);

#endif
