/* octet.c - see octet.h. */
#include "gatling/octet.h"

#include <string.h>

unsigned char octet_classes[256];

__attribute__((constructor)) static void classes_init(void) {
	for (int c = 0; c < 256; c++) {
		bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		if (alphanumeric || (c && strchr("!#$%&'*+-.^_`|~", c))) octet_classes[c] |= OCTET_TOKEN;
		if (c == '\t' || (c >= ' ' && c != 127)) octet_classes[c] |= OCTET_TEXT;
		if (c > ' ' && c != 127 && c != '#') octet_classes[c] |= OCTET_TARGET;
	}
}
