/* upstream_gzip.h - compresses responses of upstreams (--upstream-gzip). */
#ifndef GATLING_UPSTREAM_UPSTREAM_GZIP_H
#define GATLING_UPSTREAM_UPSTREAM_GZIP_H

#include "gatling/upstream/upstream_head.h"

/* Returns whether the client prefers gzip, and accepts content of unknown length. */
bool upstream_gzip_wanted(const struct request *request);

/* Returns whether the response is compressed for clients that want it. Its content must be compressible and have no
 * coding. It must not be a part (RFC 9110, section 15.3.7), a stream of events, which may stay open for long, or marked
 * no-transform (RFC 9111, section 5.2.2.6). A 304 is taken for one of such content unless its fields show otherwise; at
 * worst its entity-tag becomes weak without need. */
bool upstream_gzip_suits(const struct upstream_response *response, struct slice lines);

/* Writes the field lines of such a response to out (UPSTREAM_LINES_MAX bytes), with a Vary for caches. Returns their
 * length. compressed: leaves out the length, ranges and digests of the uncompressed content, makes the entity-tag weak
 * (RFC 9110, section 8.8.1), and adds Content-Encoding, except to a 304 (section 15.4.5). */
size_t upstream_gzip_lines(const struct upstream_response *response, struct slice lines, bool compressed, char *out);

#endif
