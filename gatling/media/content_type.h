/* content_type.h - what a file is, as its name and its first bytes tell. */
#ifndef GATLING_MEDIA_CONTENT_TYPE_H
#define GATLING_MEDIA_CONTENT_TYPE_H

#include "gatling/base/slice.h"

struct content_type {
	const char *type;      /* the media type, without parameters; static */
	bool utf8;             /* it is text in UTF-8 (charset.h) */
	struct slice encoding; /* Content-Encoding of the file; absent: none */
};

/* What content_type_find() goes by. */
struct content_source {
	struct slice path;
	struct slice encoding; /* the owner's Content-Encoding; absent: none */
	bool packed;           /* there is only a gzip copy of what has that path */
	struct slice start;    /* the first bytes of the file, or of the copy; empty: unknown, if there are more */
	bool more;             /* there are more */
	const char *named;     /* the media type that the name tells, or NULL: content_type_of_name() */
};

enum { CONTENT_TYPE_START = 64 * 1024 }; /* bytes of content_source.start that are of use */

/* Returns the media type that the name tells, as its path and the owner's Content-Encoding say, or NULL. */
const char *content_type_of_name(const struct content_source *source);

/* Returns whether the first bytes say more of the file than its name does. Otherwise that is all: content_type.type. */
bool content_type_needs_start(const struct content_source *source);

/* Says what a file is of which the first bytes say more. Without an extension that tells its type, a text is
 * text/plain, or of XML, and any other file application/octet-stream. A file with the owner's Content-Encoding has the
 * type of its name without .gz, .br or .zst. Such a file, and one called .svgz, has no Content-Encoding if it should be
 * gzip, and is not. */
struct content_type content_type_find(const struct content_source *source);

#endif
