/* path.h - from the path of a request target to a path relative to a site's root, and back. */
#ifndef GATLING_HTTP_PATH_H
#define GATLING_HTTP_PATH_H

#include "gatling/base/slice.h"

/* Segments of a path: what looks at each directory on the way looks at no more. */
enum { PATH_SEGMENTS_MAX = 64 };

/* Decodes percent-encoding (RFC 3986, section 2.1), then removes empty and dot segments (5.2.4), never climbing above
 * the root. Writes a relative path without leading slash to out (encoded.length bytes are enough) and its length to
 * *length: "" is the root, a trailing slash stays. What is written holds no NUL, no "." or ".." segment, no dot file.
 * 0; or the status to answer: 400 for a broken encoding, NUL or overlong UTF-8; 404 for an encoded slash, a dot file,
 * more than PATH_SEGMENTS_MAX segments, or a place below a dot directory (but .well-known at the root, RFC 8615). */
int path_decode(struct slice encoded, char *out, size_t *length);

/* Whether a file of that name can be asked for: a name that is overlong UTF-8 cannot. */
bool path_allows(struct slice name);

/* Whether the text begins with a percent-encoded octet. */
bool path_is_encoded(struct slice text);

/* Percent-encodes everything but unreserved characters and '/' into out (3 * path.length bytes are enough).
 * The bytes written. */
size_t path_encode(struct slice path, char *out);

/* The same for the path or query of a request target, which is encoded already: of what clients send unencoded, what a
 * URI may not hold there (RFC 3986, sections 3.3 and 3.4). */
size_t path_encode_target(struct slice target, char *out);

#endif
