/* owner_fields.h - the owner's fields (_headers) in a response that an upstream has made. */
#ifndef GATLING_EXCHANGE_OWNER_FIELDS_H
#define GATLING_EXCHANGE_OWNER_FIELDS_H

#include "gatling/site/rules/header_rules.h"
#include "gatling/upstream/upstream_head.h"

enum { OWNER_FIELDS_MAX = UPSTREAM_LINES_MAX + HEADER_ADDED_MAX };

/* Writes the field lines of a response, in the form of hpack_fields(), to out (OWNER_FIELDS_MAX bytes), with what
 * header_set_added() has written: a name without a blank is a field that is removed; any other field is added if the
 * response has none of its name, but Link, Set-Cookie and Vary always, and Cache-Control to none but 2xx and 304: what
 * the owner says of a page is not about an error in its place. Returns their length. */
size_t owner_fields_apply(int status, struct slice lines, struct slice added, char *out);

#endif
