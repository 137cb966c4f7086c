/* octet.h - what an octet may be part of in HTTP. */
#ifndef GATLING_OCTET_H
#define GATLING_OCTET_H

#include <stdbool.h>
#include <stddef.h>

/* tchar (RFC 9110, section 5.6.2); field-vchar, SP, HTAB and obs-text (5.5); what a target may hold: visible characters
 * but '#', and the octets over 127 that some clients send unencoded. */
enum octet_class { OCTET_TOKEN = 1, OCTET_TEXT = 2, OCTET_TARGET = 4 };

extern unsigned char octet_classes[256];

static inline bool octet_is(char octet, enum octet_class class) { return octet_classes[(unsigned char)octet] & class; }

#endif
