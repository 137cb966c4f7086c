/* hpack.c - see hpack.h. */
#include "gatling/http/hpack.h"

#include "gatling/base/text.h"

/* The response fields in the static table (appendix A), the most frequent first. */
static const struct {
	struct slice name;
	unsigned char index;
} known[] = {
	{SLICE("server"), 54},
	{SLICE("date"), 33},
	{SLICE("content-length"), 28},
	{SLICE("content-type"), 31},
	{SLICE("cache-control"), 24},
	{SLICE("etag"), 34},
	{SLICE("last-modified"), 44},
	{SLICE("accept-ranges"), 18},
	{SLICE("vary"), 59},
	{SLICE("content-encoding"), 26},
	{SLICE("strict-transport-security"), 56},
	{SLICE("location"), 46},
	{SLICE("content-range"), 30},
	{SLICE("access-control-allow-origin"), 20},
	{SLICE("age"), 21},
	{SLICE("allow"), 22},
	{SLICE("content-disposition"), 25},
	{SLICE("content-language"), 27},
	{SLICE("content-location"), 29},
	{SLICE("expires"), 36},
	{SLICE("link"), 45},
	{SLICE("proxy-authenticate"), 48},
	{SLICE("refresh"), 52},
	{SLICE("retry-after"), 53},
	{SLICE("set-cookie"), 55},
	{SLICE("via"), 60},
	{SLICE("www-authenticate"), 61},
};

/* Appends the integer n with a prefix of `bits` bits (section 5.1). pattern: the other bits of the first byte. */
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

static char *put_string(char *at, struct slice s) { return text_copy(put_integer(at, 0, 7, s.length), s); }

/* Appends a literal header field without indexing (section 6.2.2). */
static char *put_field(char *at, struct slice name, struct slice value) {
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (slice_equal_nocase(known[i].name, name)) return put_string(put_integer(at, 0, 4, known[i].index), value);
	*at++ = 0;
	at = put_integer(at, 0, 7, name.length);
	for (size_t i = 0; i < name.length; i++) *at++ = text_lower(name.at[i]);
	return put_string(at, value);
}

size_t hpack_fields(struct slice lines, char *out) {
	char *at = out;
	while (lines.length) {
		struct slice line = slice_first(lines, slice_until(lines, '\r'));
		size_t colon = slice_until(line, ':');
		at = put_field(at, slice_first(line, colon), slice_rest(line, colon + strlen(": ")));
		slice_drop(&lines, line.length + strlen("\r\n"));
	}
	return (size_t)(at - out);
}

size_t hpack_status(int status, char *out) {
	static const int indexed[] = {200, 204, 206, 304, 400, 404, 500}; /* entries 8 to 14 of the static table */
	for (size_t i = 0; i < sizeof indexed / sizeof *indexed; i++) {
		if (indexed[i] != status) continue;
		*out = (char)(0x80 | (8 + i));
		return 1;
	}
	char *at = put_integer(out, 0, 4, 8);
	*at++ = 3;
	return (size_t)(text_copy_number(at, (uint64_t)status) - out);
}
