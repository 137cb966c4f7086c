/* qpack.h - encodes field lines as the lines of a QPACK field section (RFC 9204), as hpack.h does for HPACK: without
 * the dynamic table, so that the two octets before them are always 0 (section 4.5.1). */
#ifndef GATLING_HPACK_QPACK_H
#define GATLING_HPACK_QPACK_H

#include "gatling/base/slice.h"

/* Encodes field lines ("Name: value", each with its CRLF) to out (HPACK_BOUND() bytes). Returns the number of bytes
 * written. */
size_t qpack_fields(struct slice lines, char *out);

/* Encodes :status to out (QPACK_STATUS bytes). Returns the number of bytes written. */
enum { QPACK_STATUS = 6 };
size_t qpack_status(int status, char *out);

#endif
