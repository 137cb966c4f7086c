/* utf8.h - text in UTF-8 (RFC 3629). */
#ifndef GATLING_BASE_UTF8_H
#define GATLING_BASE_UTF8_H

#include <stdint.h>

#include "gatling/base/slice.h"

/* The first character of a text that is not empty: the bytes of it, and its code point; UTF8_INVALID and 1: a byte that
 * is part of none. */
#define UTF8_INVALID UINT32_MAX
size_t utf8_character(struct slice text, uint32_t *character);

/* Whether the bytes at the start of a file are text: UTF-8, and without the control characters that only binary data
 * has (https://mimesniff.spec.whatwg.org/#binary-data-byte). more: the file goes on, and may do so within a character.
 */
bool utf8_is_text(struct slice start, bool more);

#endif
