/* media_type.h - the media types (IANA) of file name extensions. */
#ifndef GATLING_HTTP_MEDIA_TYPE_H
#define GATLING_HTTP_MEDIA_TYPE_H

#include "gatling/base/slice.h"

#define MIME_TEXT "text/plain; charset=utf-8"
#define MIME_UNKNOWN "application/octet-stream"

/* Returns the value of Content-Type for a file name or path, for text with UTF-8 as its charset. NULL: the extension is
 * not known. */
const char *mime_type(struct slice path);

/* Reads types that precede the built-in ones from a file in the format of mime.types: a type and its extensions on a
 * line; '#' begins a comment. To be called before there are workers. Returns 0; the number of a malformed line; or -1
 * with errno if the file cannot be read (EFBIG: over MIME_FILE_MAX). */
enum { MIME_FILE_MAX = 1024 * 1024 /* bytes */, MIME_TYPE_MAX = 128 };
int mime_load(const char *file);

#endif
