/* upstream_gzip.h - responses of upstreams that are compressed on their way (--upstream-gzip). */
#ifndef GATLING_UPSTREAM_UPSTREAM_GZIP_H
#define GATLING_UPSTREAM_UPSTREAM_GZIP_H

#include "gatling/upstream/upstream_head.h"

/* Returns whether the client prefers gzip, and can be sent content whose length is not known. */
bool upstream_gzip_wanted(const struct request *request);

/* Returns whether the response would be compressed for a client that wants it. It has content that gets smaller, and no
 * coding; is no part (RFC 9110, section 15.3.7), no stream of events, which may stay open long, and not to be left as
 * it is (RFC 9111, section 5.2.2.6). A 304 stands for such content, unless it says something else: at worst, its entity
 * tag then says less than it could. */
bool upstream_gzip_suits(const struct upstream_response *response, struct slice lines);

/* Writes the lines of such a response to out (UPSTREAM_LINES_MAX bytes). Returns their length. A cache is told that it
 * depends on the client (Vary). compressed: nor has it the length, the parts, the digests and the strong entity tag
 * (RFC 9110, section 8.8.1) of the content without a coding. So it is with a 304 (section 15.4.5), which has no
 * coding. */
size_t upstream_gzip_lines(const struct upstream_response *response, struct slice lines, bool compressed, char *out);

#endif
