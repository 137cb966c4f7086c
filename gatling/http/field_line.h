/* field_line.h - writes field lines (RFC 9112, section 5), each with its CRLF, to memory that has room for them. */
#ifndef GATLING_HTTP_FIELD_LINE_H
#define GATLING_HTTP_FIELD_LINE_H

#include <stdint.h>

#include "gatling/base/slice.h"

enum { FIELD_LINE_MORE = sizeof ": \r\n" - 1 /* bytes of a line besides its name and value */ };

/* Write a field line to `at`. Both return the end of the line. */
char *field_line_put(char *at, struct slice name, struct slice value);
char *field_line_put_length(char *at, uint64_t content_length);

#endif
