/* hpack.h - field lines as a header block of HPACK (RFC 7541), without the dynamic table: what is written once is good
 * for every connection. Names that the static table has go by number. */
#ifndef GATLING_HPACK_H
#define GATLING_HPACK_H

#include "gatling/slice.h"

/* Bytes that a block of text of that length takes at most. */
static inline size_t hpack_bound(size_t text_length) { return text_length + 8; }

/* Writes field lines ("Name: value", each with its CRLF) to out (hpack_bound() bytes). The bytes written. */
size_t hpack_fields(struct slice lines, char *out);

/* Writes :status to out (HPACK_STATUS bytes). The bytes written. */
enum { HPACK_STATUS = 5 };
size_t hpack_status(int status, char *out);

#endif
