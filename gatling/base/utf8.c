/* utf8.c - see utf8.h. */
#include "gatling/base/utf8.h"

#include "gatling/base/owfat.h"

enum { CHARACTER_MAX = 4 /* bytes */, CODE_POINT_MAX = 0x10FFFF }; /* scan_utf8_sem() goes further than RFC 3629 */

size_t utf8_character(struct slice text, uint32_t *character) {
	if ((unsigned char)text.at[0] < 0x80) {
		*character = (unsigned char)text.at[0];
		return 1;
	}
	uint32_t c;
	size_t length = scan_utf8_sem(text.at, text.length, &c);
	if (length && length <= CHARACTER_MAX && c <= CODE_POINT_MAX) {
		*character = c;
		return length;
	}
	*character = UTF8_INVALID;
	return 1;
}

static bool is_binary(uint32_t c) { return c < ' ' && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != '\x1b'; }

/* Whether a character may begin there that is not complete. */
static bool is_cut(struct slice rest) {
	if (rest.length >= CHARACTER_MAX || (unsigned char)rest.at[0] < 0xC2) return false;
	for (size_t i = 1; i < rest.length; i++)
		if (((unsigned char)rest.at[i] & 0xC0) != 0x80) return false;
	return true;
}

bool utf8_is_text(struct slice start, bool more) {
	while (start.length) {
		uint32_t c;
		size_t length = utf8_character(start, &c);
		if (c == UTF8_INVALID) return more && is_cut(start);
		if (is_binary(c)) return false;
		start.at += length;
		start.length -= length;
	}
	return true;
}
