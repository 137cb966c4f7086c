/* media_type.h - media types by file name extension: the IANA types that a site uses. */
#ifndef GATLING_HTTP_MEDIA_TYPE_H
#define GATLING_HTTP_MEDIA_TYPE_H

#include "gatling/base/slice.h"

#define MIME_TEXT "text/plain; charset=utf-8"
#define MIME_UNKNOWN "application/octet-stream"

/* The value of Content-Type for a file name or path; UTF-8 is said for text. NULL: the name does not tell. */
const char *mime_type(struct slice path);

/* Reads further types, which come before the built-in ones, from a file in the format of mime.types: a type and its
 * extensions on a line; '#' begins a comment. Before there are workers. 0; or the number of the line that is wrong, or
 * -1 with errno: it cannot be read (EFBIG: over MIME_FILE_MAX). */
enum { MIME_FILE_MAX = 1024 * 1024 /* bytes */, MIME_TYPE_MAX = 128 };
int mime_load(const char *file);

#endif
