/* hpack.h - writes field lines as a header block of HPACK (RFC 7541) without the dynamic table, so that one block is
 * good for every connection. The names of fields of responses that the
 * static table has are written as their index. */
#ifndef GATLING_HTTP_HPACK_H
#define GATLING_HTTP_HPACK_H

#include "gatling/base/slice.h"

/* The most bytes that a block of field lines takes. In each line ": " and CRLF leave room for the first byte and for
 * two lengths of a byte and a half; a longer length belongs to a text long enough to pay for it. */
#define HPACK_BOUND(text_length) ((text_length) + (text_length) / 128 + 8)

/* Writes field lines ("Name: value", each with its CRLF) to out (HPACK_BOUND() bytes). Returns the bytes written. */
size_t hpack_fields(struct slice lines, char *out);

/* Writes :status to out (HPACK_STATUS bytes). Returns the bytes written. */
enum { HPACK_STATUS = 5 };
size_t hpack_status(int status, char *out);

#endif
