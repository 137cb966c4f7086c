/* chars.h - what an octet may be part of in HTTP. */
#ifndef GATLING_HTTP_CHARS_H
#define GATLING_HTTP_CHARS_H

#include <stdbool.h>
#include <stddef.h>

/* tchar (RFC 9110, section 5.6.2); field-vchar, SP, HTAB and obs-text (5.5); what a target may hold: visible characters
 * but '#', and the octets over 127 that some clients send unencoded; what the name of a host may hold. */
enum char_class { CHAR_TOKEN = 1, CHAR_TEXT = 2, CHAR_TARGET = 4, CHAR_HOST = 8 };

extern unsigned char char_classes[256];

/* How many octets at the start are CHAR_TEXT. Most of a head is: they are looked at eight at a time. */
size_t chars_text(const char *at, size_t length);

static inline bool char_is(char octet, enum char_class class) { return char_classes[(unsigned char)octet] & class; }

#endif
