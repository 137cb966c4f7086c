/* chars.c - see chars.h. */
#include "gatling/http/chars.h"

unsigned char char_classes[256];

__attribute__((constructor)) static void classes_init(void) {
	for (int c = 0; c < 256; c++) {
		bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (alphanumeric || (c && strchr("!#$%&'*+-.^_`|~", c))) char_classes[c] |= CHAR_TOKEN;
		if (c == '\t' || (c >= ' ' && c != 127)) char_classes[c] |= CHAR_TEXT;
		if (c > ' ' && c != 127 && c != '#') char_classes[c] |= CHAR_TARGET;
		if (alphanumeric || c == '-' || c == '_' || c == '.') char_classes[c] |= CHAR_HOST;
		if (alphanumeric || (c && strchr("-._~", c))) char_classes[c] |= CHAR_UNRESERVED;
		if (c >= ' ' && c < 127 && c != '"' && c != '\\') char_classes[c] |= CHAR_QUOTABLE;
	}
}
