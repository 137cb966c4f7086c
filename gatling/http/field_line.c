/* field_line.c - see field_line.h. */
#include "gatling/http/field_line.h"

#include "gatling/base/slice.h"

char *field_line_put(char *at, struct slice name, struct slice value) {
	return TEXT_JOIN(at, name, SLICE(": "), value, SLICE("\r\n"));
}

char *field_line_put_length(char *at, uint64_t content_length) {
	at = text_copy_number(text_copy(at, SLICE("Content-Length: ")), content_length);
	return text_copy(at, SLICE("\r\n"));
}
