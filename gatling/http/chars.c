/* chars.c - see chars.h. */
#include "gatling/http/chars.h"

#include <stdint.h>
#include <string.h>

unsigned char char_classes[256];

__attribute__((constructor)) static void classes_init(void) {
	for (int c = 0; c < 256; c++) {
		bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (alphanumeric || (c && strchr("!#$%&'*+-.^_`|~", c))) char_classes[c] |= CHAR_TOKEN;
		if (c == '\t' || (c >= ' ' && c != 127)) char_classes[c] |= CHAR_TEXT;
		if (c > ' ' && c != 127 && c != '#') char_classes[c] |= CHAR_TARGET;
		if (alphanumeric || c == '-' || c == '_' || c == '.') char_classes[c] |= CHAR_HOST;
	}
}

/* Returns a word with this value in each byte. */
static uint64_t eight(unsigned char octet) { return UINT64_MAX / 255 * octet; }

/* Returns whether each byte is at least ' ' and not DEL (Bit Twiddling Hacks, "has less", "has zero"). */
static bool visible(uint64_t word) {
	uint64_t not_del = word ^ eight(127);
	return !((((word - eight(' ')) & ~word) | ((not_del - eight(1)) & ~not_del)) & eight(128));
}

static bool visible_at(const char *at) {
	uint64_t word;
	memcpy(&word, at, sizeof word);
	return visible(word);
}

size_t chars_text(const char *at, size_t length) {
	enum { WORD = sizeof(uint64_t) };
	size_t n = 0;
	while (n + WORD <= length && visible_at(at + n)) n += WORD;
	if (length >= WORD && visible_at(at + length - WORD) && n + WORD > length) return length;
	while (n < length && char_is(at[n], CHAR_TEXT)) n++;
	return n;
}

bool chars_all(struct slice text, enum char_class class) {
	size_t n = 0;
	while (n < text.length && char_is(text.at[n], class)) n++;
	return n > 0 && n == text.length;
}
