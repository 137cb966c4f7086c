/* chars.h - the character classes of HTTP. */
#ifndef GATLING_HTTP_CHARS_H
#define GATLING_HTTP_CHARS_H

#include <stdbool.h>
#include <stddef.h>

#include "gatling/base/slice.h"

/* CHAR_TOKEN: tchar (RFC 9110, section 5.6.2). CHAR_TEXT: field-vchar, SP, HTAB and obs-text (5.5). CHAR_TARGET:
 * characters of a request target, which are the visible ones except '#', and bytes over 127, since some clients do not
 * encode them. CHAR_HOST: characters of a host name. CHAR_QUOTABLE: printable ASCII except '"' and '\\'. */
enum char_class { CHAR_TOKEN = 1, CHAR_TEXT = 2, CHAR_TARGET = 4, CHAR_HOST = 8, CHAR_QUOTABLE = 16 };

extern unsigned char char_classes[256];

static inline bool char_is(char octet, enum char_class class) {
	return (char_classes[(unsigned char)octet] & class) != 0;
}

/* Return how many octets at the start of text are of the class. They test 16 octets at once. */
size_t chars_text(struct slice text);
size_t chars_token(struct slice text);
size_t chars_target(struct slice text);
size_t chars_host(struct slice text);
size_t chars_quotable(struct slice text);

#endif
