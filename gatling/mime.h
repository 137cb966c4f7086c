/* mime.h - media types by file name extension: the IANA types that a site uses. */
#ifndef GATLING_MIME_H
#define GATLING_MIME_H

#include "gatling/slice.h"

/* The value of Content-Type for a file name or path; UTF-8 is said for text. application/octet-stream if not known. */
const char *mime_type(struct slice path);

#endif
