/* octet.c - see octet.h. */
#include "gatling/octet.h"

#include <stdint.h>
#include <string.h>

unsigned char octet_classes[256];

__attribute__((constructor)) static void classes_init(void) {
	for (int c = 0; c < 256; c++) {
		bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (alphanumeric || (c && strchr("!#$%&'*+-.^_`|~", c))) octet_classes[c] |= OCTET_TOKEN;
		if (c == '\t' || (c >= ' ' && c != 127)) octet_classes[c] |= OCTET_TEXT;
		if (c > ' ' && c != 127 && c != '#') octet_classes[c] |= OCTET_TARGET;
		if (alphanumeric || c == '-' || c == '_' || c == '.') octet_classes[c] |= OCTET_HOST;
	}
}

/* Each octet of a word. */
static uint64_t eight(unsigned char octet) { return UINT64_MAX / 255 * octet; }

/* Whether each octet is at least ' ' and not DEL (Bit Twiddling Hacks, "has less", "has zero"). */
static bool visible(uint64_t word) {
	uint64_t not_del = word ^ eight(127);
	return !((((word - eight(' ')) & ~word) | ((not_del - eight(1)) & ~not_del)) & eight(128));
}

size_t octet_text(const char *at, size_t length) {
	size_t n = 0;
	while (n < length) {
		uint64_t word;
		if (length - n >= sizeof word && (memcpy(&word, at + n, sizeof word), visible(word))) n += sizeof word;
		else if (octet_is(at[n], OCTET_TEXT)) n++;
		else break;
	}
	return n;
}
