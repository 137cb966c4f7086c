/* utf8.h - text in UTF-8 (RFC 3629). */
#ifndef GATLING_BASE_UTF8_H
#define GATLING_BASE_UTF8_H

#include <stdint.h>

#include "gatling/base/slice.h"

/* Writes the code point of the first character of a text, which must not be empty, to *character. Returns its length in
 * bytes. If the first byte is not part of valid UTF-8, writes UTF8_INVALID and returns 1. */
#define UTF8_INVALID UINT32_MAX
size_t utf8_character(struct slice text, uint32_t *character);

/* Returns whether the start of a file looks like text: valid UTF-8 without the control characters that only binary data
 * has (https://mimesniff.spec.whatwg.org/#binary-data-byte). more: the file goes on, so the last character may be
 * incomplete. */
bool utf8_is_text(struct slice start, bool more);

/* Returns whether a text that has no valid character at its front may be the beginning of one. It must not be empty. */
bool utf8_is_incomplete(struct slice text);

/* Returns whether the text has overlong forms (RFC 3629, section 3), with which "/" and "." were once smuggled past
 * checks. It need not be UTF-8 otherwise. */
bool utf8_has_overlong(struct slice text);

#endif
