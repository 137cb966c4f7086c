/* hpack.h - encodes field lines as an HPACK header block (RFC 7541). Names of response fields that are in the static
 * table become indexes. Blocks do not use the dynamic table, and are valid on every connection: shared_lines.h makes
 * those that do. */
#ifndef GATLING_HPACK_HPACK_H
#define GATLING_HPACK_HPACK_H

#include "gatling/base/slice.h"

/* The maximum size of a block for field lines of text_length bytes. In each line the four bytes of ": " and CRLF make
 * up for the first byte and two lengths, one of which may have two bytes; longer lengths occur only with more than 128
 * bytes of text. */
#define HPACK_BOUND(text_length) ((text_length) + (text_length) / 128 + 8)

/* Encodes field lines ("Name: value", each with its CRLF) to out (HPACK_BOUND() bytes). Returns the number of bytes
 * written. */
size_t hpack_fields(struct slice lines, char *out);

/* Takes the next of field lines, without its CRLF. */
static inline struct slice hpack_next(struct slice *lines) {
	const struct slice line = slice_first(*lines, slice_until(*lines, '\r'));
	slice_drop(lines, line.length + strlen("\r\n"));
	return line;
}

/* Appends one line, without its CRLF, as a literal field. indexed: the dynamic table gets it as an entry. Returns the
 * end. */
char *hpack_line(char *at, struct slice line, bool indexed);

/* Returns whether responses often have the same line: so it is not with ETag or Date. */
bool hpack_is_common(struct slice line);

/* Encodes :status to out (HPACK_STATUS bytes). Returns the number of bytes written. */
enum { HPACK_STATUS = 5 };
size_t hpack_status(int status, char *out);

#endif
