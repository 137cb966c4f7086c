/* path.h - turns the path of a request target into a path relative to the root of a site, and back. */
#ifndef GATLING_HTTP_PATH_H
#define GATLING_HTTP_PATH_H

#include "gatling/base/slice.h"

/* The most segments of a path; it limits how many directories are tested for a request. */
enum { PATH_SEGMENTS_MAX = 64 };

/* Decodes percent-encoding (RFC 3986, section 2.1), then removes empty and dot segments (5.2.4), never climbing above
 * the root. Writes a relative path without leading slash to out (encoded.length bytes are enough) and its length to
 * *length: "" is the root; a trailing slash stays. The result has no NUL, no "." or ".." segment and no dot file.
 * Returns 0, or the status to answer: 400 for a broken encoding, NUL or overlong UTF-8; 404 for an encoded slash, a dot
 * file, more than PATH_SEGMENTS_MAX segments, or anything in a dot directory but .well-known at the root (RFC 8615). */
int path_decode(struct slice encoded, char *out, size_t *length);

/* Returns whether a request can name a file of this name. It cannot if the name has overlong UTF-8. */
bool path_allows(struct slice name);

/* Returns whether a path has a segment that is "." or ".." for those who get it: each dot may be percent-encoded
 * (https://url.spec.whatwg.org/#double-dot-path-segment), and so may be the slashes; '\' separates segments for
 * browsers, and servers for Java ignore a ';' and what follows it. */
bool path_has_dots(struct slice path);

/* Returns whether the text begins with a percent-encoded byte. */
bool path_is_encoded(struct slice text);

/* Returns the percent-encoded byte at the start of text, see path_is_encoded(). */
unsigned char path_decode_byte(struct slice text);

/* Percent-encodes everything but unreserved characters and '/' to out (3 * path.length bytes are enough). Returns the
 * number of bytes written. */
size_t path_encode(struct slice path, char *out);

/* Does the same with the path or query of a request target: encodes only those characters that the client should have
 * encoded (RFC 3986, sections 3.3 and 3.4). */
size_t path_encode_target(struct slice target, char *out);

/* The path of ACME HTTP challenges (RFC 8555, section 8.3), relative to the root of a site. */
static const struct slice path_acme_challenge = SLICE(".well-known/acme-challenge/");

#endif
