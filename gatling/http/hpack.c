/* hpack.c - see hpack.h. */
#include "gatling/http/hpack.h"

#include "gatling/base/owfat.h"

/* Of appendix A, those that are used here. */
static const struct {
	struct slice name;
	unsigned char index;
} known[] = {
	{SLICE("accept-ranges"), 18},
	{SLICE("allow"), 22},
	{SLICE("content-length"), 28},
	{SLICE("content-range"), 30},
	{SLICE("content-type"), 31},
	{SLICE("date"), 33},
	{SLICE("etag"), 34},
	{SLICE("last-modified"), 44},
	{SLICE("location"), 46},
	{SLICE("server"), 54},
	{SLICE("strict-transport-security"), 56},
};

/* An integer behind a pattern in the first octet (section 5.1). */
static char *put_integer(char *at, unsigned pattern, unsigned bits, size_t n) {
	size_t most = (1U << bits) - 1;
	if (n < most) {
		*at++ = (char)(pattern | n);
		return at;
	}
	*at++ = (char)(pattern | most);
	for (n -= most; n >= 128; n >>= 7) *at++ = (char)(128 | (n & 127));
	*at++ = (char)n;
	return at;
}

static char *put_string(char *at, struct slice s) {
	at = put_integer(at, 0, 7, s.length);
	memcpy(at, s.at, s.length);
	return at + s.length;
}

/* Literal header field without indexing (section 6.2.2). */
static char *put_field(char *at, struct slice name, struct slice value) {
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!slice_equal_nocase(known[i].name, name)) continue;
		return put_string(put_integer(at, 0, 4, known[i].index), value);
	}
	*at++ = 0;
	char *lower = put_integer(at, 0, 7, name.length);
	for (size_t i = 0; i < name.length; i++) {
		char c = name.at[i];
		*lower++ = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	return put_string(lower, value);
}

size_t hpack_fields(struct slice lines, char *out) {
	char *at = out;
	while (lines.length) {
		const char *colon = memchr(lines.at, ':', lines.length),
				   *end = memchr(colon, '\r', (size_t)(lines.at + lines.length - colon));
		struct slice name = {.at = lines.at, .length = (size_t)(colon - lines.at)};
		struct slice value = {.at = colon + 2, .length = (size_t)(end - colon - 2)};
		at = put_field(at, name, value);
		lines.length -= (size_t)(end + 2 - lines.at);
		lines.at = end + 2;
	}
	return (size_t)(at - out);
}

size_t hpack_status(int status, char *out) {
	static const int indexed[] = {200, 204, 206, 304, 400, 404, 500}; /* from number 8 on */
	for (size_t i = 0; i < sizeof indexed / sizeof *indexed; i++) {
		if (indexed[i] != status) continue;
		*out = (char)(0x80 | (8 + i));
		return 1;
	}
	char *at = put_integer(out, 0, 4, 8);
	*at++ = 3;
	return (size_t)(at - out) + fmt_ulong(at, (unsigned long)status);
}
