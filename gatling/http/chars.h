/* chars.h - the character classes of HTTP. */
#ifndef GATLING_HTTP_CHARS_H
#define GATLING_HTTP_CHARS_H

#include <stdbool.h>
#include <stddef.h>

#include "gatling/base/slice.h"

/* CHAR_TOKEN: tchar (RFC 9110, section 5.6.2). CHAR_TEXT: field-vchar, SP, HTAB and obs-text (5.5). CHAR_TARGET: what
 * a target may have: visible characters except '#', and bytes over 127, which some clients do not encode. CHAR_HOST:
 * what the name of a host may have. */
enum char_class { CHAR_TOKEN = 1, CHAR_TEXT = 2, CHAR_TARGET = 4, CHAR_HOST = 8 };

extern unsigned char char_classes[256];

/* Returns how many bytes at the start are CHAR_TEXT, testing eight at a time: most of a head is such text. */
size_t chars_text(const char *at, size_t length);

static inline bool char_is(char octet, enum char_class class) { return char_classes[(unsigned char)octet] & class; }

/* Returns whether a text has characters, all of that class. */
bool chars_all(struct slice text, enum char_class class);

#endif
