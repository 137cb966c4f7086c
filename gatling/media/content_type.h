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
};

enum { CONTENT_TYPE_START = 64 * 1024 }; /* bytes of content_source.start that are of use */

/* Returns whether content_type_find() needs the first bytes. */
bool content_type_needs_start(const struct content_source *source);

/* Says what the file is. Without an extension that tells its type, a text is text/plain, or of XML, and any other file
 * application/octet-stream. A file with the owner's Content-Encoding has the type of its name without .gz, .br or .zst.
 * Such a file, and one called .svgz, has no Content-Encoding if it should be gzip, and is not. */
struct content_type content_type_find(const struct content_source *source);

#endif
