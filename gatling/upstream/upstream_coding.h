/* upstream_coding.h - which responses of upstreams are compressed (--upstream-gzip), and with what. */
#ifndef GATLING_UPSTREAM_UPSTREAM_CODING_H
#define GATLING_UPSTREAM_UPSTREAM_CODING_H

#include "gatling/http/coding.h"
#include "gatling/upstream/upstream_head.h"

/* Returns the coding that the client prefers: CODING_GZIP, CODING_ZSTD, which costs less, or CODING_IDENTITY, also if
 * it does not accept content of unknown length. */
enum coding upstream_coding_wanted(const struct request *request);

/* Returns whether the response is compressed for clients that want it. Its content must be compressible and have no
 * coding. It must not be a part (RFC 9110, section 15.3.7), or marked no-transform (RFC 9111, section 5.2.2.6). A 304
 * is taken for one of such content unless its fields show otherwise; at worst its entity-tag becomes weak without need.
 */
bool upstream_coding_suits(const struct upstream_response *response, struct slice lines);

/* Returns whether the response is a stream of events, which may stay open for long. */
bool upstream_coding_lasts(struct slice lines);

/* Writes the field lines of such a response to out (UPSTREAM_LINES_MAX bytes), with a Vary for caches. Returns their
 * length. coding: if it is not CODING_IDENTITY, leaves out the length, ranges and digests of the uncompressed content,
 * makes the entity-tag weak (RFC 9110, section 8.8.1), and adds Content-Encoding, except to a 304 (section 15.4.5). */
size_t upstream_coding_lines(const struct upstream_response *response, struct slice lines, enum coding coding,
							 char *out);

#endif
