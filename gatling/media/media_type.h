/* media_type.h - the media types (IANA) of file name extensions. */
#ifndef GATLING_MEDIA_MEDIA_TYPE_H
#define GATLING_MEDIA_MEDIA_TYPE_H

#include "gatling/base/slice.h"

#define MEDIA_TYPE_TEXT "text/plain"
#define MEDIA_TYPE_UNKNOWN "application/octet-stream"

/* Returns the Content-Type for a file name or path, or NULL if the extension is unknown. It has no parameters. */
const char *media_type_of(struct slice path);

/* Reads types, which take precedence over the built-in ones, from a file in the format of mime.types: a type and its
 * extensions on each line; '#' begins a comment. Must be called before there are workers. Returns 0, the number of a
 * malformed line, or -1 with errno if the file cannot be read (EFBIG: over LINES_TEXT_MAX). */
enum { MEDIA_TYPE_MAX = 128 /* bytes of a type */ };
int media_types_load(const char *file);

#endif
