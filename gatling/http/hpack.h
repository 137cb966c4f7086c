/* hpack.h - field lines as a header block of HPACK (RFC 7541), without the dynamic table: what is written once is good
 * for every connection. Names that the static table has go by number. */
#ifndef GATLING_HTTP_HPACK_H
#define GATLING_HTTP_HPACK_H

#include "gatling/base/slice.h"

/* Bytes that a block of field lines of that length takes at most: of each, ": " and CRLF make room for an octet and two
 * lengths of one octet and a half; a length that takes more is of so much text that the share of it pays. */
#define HPACK_BOUND(text_length) ((text_length) + (text_length) / 128 + 8)

/* Writes field lines ("Name: value", each with its CRLF) to out (HPACK_BOUND() bytes). The bytes written. */
size_t hpack_fields(struct slice lines, char *out);

/* Writes :status to out (HPACK_STATUS bytes). The bytes written. */
enum { HPACK_STATUS = 5 };
size_t hpack_status(int status, char *out);

#endif
