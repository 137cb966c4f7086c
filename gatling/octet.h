/* octet.h - what an octet may be part of in HTTP. */
#ifndef GATLING_OCTET_H
#define GATLING_OCTET_H

#include <stdbool.h>
#include <stddef.h>

/* tchar (RFC 9110, section 5.6.2); field-vchar, SP, HTAB and obs-text (5.5); what a target may hold: visible characters
 * but '#', and the octets over 127 that some clients send unencoded; what the name of a host may hold. */
enum octet_class { OCTET_TOKEN = 1, OCTET_TEXT = 2, OCTET_TARGET = 4, OCTET_HOST = 8 };

extern unsigned char octet_classes[256];

/* How many octets at the start are OCTET_TEXT. Most of a head is: they are looked at eight at a time. */
size_t octet_text(const char *at, size_t length);

static inline bool octet_is(char octet, enum octet_class class) { return octet_classes[(unsigned char)octet] & class; }

#endif
