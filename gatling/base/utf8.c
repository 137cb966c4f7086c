/* utf8.c - see utf8.h. */
#include "gatling/base/utf8.h"

#include "gatling/base/owfat.h"

enum { CHARACTER_MAX = 4 /* bytes */, CODE_POINT_MAX = 0x10FFFF };

size_t utf8_character(struct slice text, uint32_t *character) {
	if ((unsigned char)text.at[0] < 0x80) {
		*character = (unsigned char)text.at[0];
		return 1;
	}
	uint32_t c = 0;
	/* scan_utf8() accepts surrogates, and characters beyond RFC 3629 */
	size_t length = scan_utf8(text.at, text.length, &c);
	bool valid = length && length <= CHARACTER_MAX && c <= CODE_POINT_MAX && !(c >= 0xD800 && c <= 0xDFFF);
	*character = valid ? c : UTF8_INVALID;
	return valid ? length : 1;
}

static bool is_binary(uint32_t c) { return c < ' ' && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != '\x1b'; }

bool utf8_is_incomplete(struct slice text) {
	const unsigned char lead = (unsigned char)text.at[0];
	if (text.length >= CHARACTER_MAX || lead < 0xC2 || lead > 0xF4) return false;
	for (size_t i = 1; i < text.length; i++)
		if (((unsigned char)text.at[i] & 0xC0) != 0x80) return false;
	return true;
}

bool utf8_is_text(struct slice start, bool more) {
	while (start.length) {
		uint32_t c;
		size_t length = utf8_character(start, &c);
		if (c == UTF8_INVALID) return more && utf8_is_incomplete(start);
		if (is_binary(c)) return false;
		slice_drop(&start, length);
	}
	return true;
}

bool utf8_has_overlong(struct slice text) {
	for (size_t i = 0; i + 1 < text.length; i++) {
		unsigned char lead = (unsigned char)text.at[i], next = (unsigned char)text.at[i + 1];
		if ((lead == 0xC0 || lead == 0xC1) && (next & 0xC0) == 0x80) return true;
		if (lead == 0xE0 && next >= 0x80 && next < 0xA0) return true;
		if (lead == 0xF0 && next >= 0x80 && next < 0x90) return true;
	}
	return false;
}
