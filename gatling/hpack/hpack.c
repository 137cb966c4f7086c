/* hpack.c - see hpack.h and qpack.h. */
#include "gatling/hpack/hpack.h"

#include "gatling/base/slice.h"
#include "gatling/hpack/huffman.h"
#include "gatling/hpack/qpack.h"

enum { NONE = 0 }; /* the entries 0 of both tables are none of these */

/* The response fields in the static tables (RFC 7541 and RFC 9204, appendix A), the most frequent first. */
static const struct {
	struct slice name;
	unsigned char hpack, qpack;
	bool differs; /* from response to response */
} known[] = {
	{SLICE("server"), 54, 92, false},
	{SLICE("date"), 33, 6, true},
	{SLICE("content-length"), 28, 4, true},
	{SLICE("content-type"), 31, 44, false},
	{SLICE("cache-control"), 24, 36, false},
	{SLICE("etag"), 34, 7, true},
	{SLICE("last-modified"), 44, 10, true},
	{SLICE("accept-ranges"), 18, 32, false},
	{SLICE("vary"), 59, 59, false},
	{SLICE("content-encoding"), 26, 42, false},
	{SLICE("strict-transport-security"), 56, 56, false},
	{SLICE("location"), 46, 12, true},
	{SLICE("content-range"), 30, NONE, true},
	{SLICE("access-control-allow-origin"), 20, 35, false},
	{SLICE("age"), 21, 2, true},
	{SLICE("allow"), 22, NONE, false},
	{SLICE("content-disposition"), 25, 3, false},
	{SLICE("content-language"), 27, NONE, false},
	{SLICE("content-location"), 29, NONE, true},
	{SLICE("expires"), 36, NONE, true},
	{SLICE("link"), 45, 11, false},
	{SLICE("proxy-authenticate"), 48, NONE, false},
	{SLICE("refresh"), 52, NONE, false},
	{SLICE("retry-after"), 53, NONE, false},
	{SLICE("set-cookie"), 55, 14, true},
	{SLICE("via"), 60, NONE, false},
	{SLICE("www-authenticate"), 61, NONE, false},
	{SLICE("x-content-type-options"), NONE, 61, false},
	{SLICE("content-security-policy"), NONE, 85, false},
	{SLICE("x-frame-options"), NONE, 97, false},
	{SLICE("alt-svc"), NONE, 83, false},
	{SLICE("access-control-allow-methods"), NONE, 76, false},
	{SLICE("access-control-allow-headers"), NONE, 33, false},
	{SLICE("access-control-allow-credentials"), NONE, 73, false},
	{SLICE("access-control-expose-headers"), NONE, 79, false},
	{SLICE("timing-allow-origin"), NONE, 93, false},
	{SLICE("x-xss-protection"), NONE, 62, false},
	{SLICE("use-as-dictionary"), NONE, NONE, true},
	{SLICE("repr-digest"), NONE, NONE, true},
};

enum { KNOWN = sizeof known / sizeof *known };

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

/* Appends a string literal, whose length has a prefix of `bits` bits, after the bit that says whether it is encoded
 * with the Huffman code (section 5.2). */
static char *put_string(char *at, unsigned pattern, unsigned bits, struct slice s) {
	const size_t coded = huffman_length(s);
	if (coded < s.length) return huffman_put(put_integer(at, pattern | 1U << bits, bits, coded), s);
	return text_copy(put_integer(at, pattern, bits, s.length), s);
}

static char *put_value(char *at, struct slice s) { return put_string(at, 0, 7, s); }

static char *put_name(char *at, unsigned pattern, unsigned bits, struct slice name) {
	enum { SHORT = 64 }; /* bytes; longer names are not worth a buffer */
	char lower[SHORT];
	if (name.length > SHORT) {
		at = put_integer(at, pattern, bits, name.length);
		for (size_t i = 0; i < name.length; i++) *at++ = text_lower(name.at[i]);
		return at;
	}
	for (size_t i = 0; i < name.length; i++) lower[i] = text_lower(name.at[i]);
	return put_string(at, pattern, bits, (struct slice){.at = lower, .length = name.length});
}

/* Returns the place of a name in known, or KNOWN. */
static size_t find_known(struct slice name) {
	size_t i = 0;
	while (i < KNOWN && !slice_equal_nocase(known[i].name, name)) i++;
	return i;
}

/* Splits a line without its CRLF in two. Returns the name. */
static struct slice split(struct slice line, struct slice *value) {
	const size_t colon = slice_until(line, ':');
	*value = slice_rest(line, colon + strlen(": "));
	return slice_first(line, colon);
}

/* Sections 6.2.1 and 6.2.2 of RFC 7541. */
char *hpack_line(char *at, struct slice line, bool indexed) {
	const unsigned pattern = indexed ? 0x40 : 0, bits = indexed ? 6 : 4;
	struct slice value, name = split(line, &value);
	const size_t i = find_known(name);
	if (i < KNOWN && known[i].hpack) return put_value(put_integer(at, pattern, bits, known[i].hpack), value);
	*at++ = (char)pattern;
	return put_value(put_name(at, 0, 7, name), value);
}

static char *put_hpack(char *at, struct slice line) { return hpack_line(at, line, false); }

/* Appends a literal field line with a name of the static table, or with a literal name (RFC 9204, sections 4.5.4 and
 * 4.5.6). */
static char *put_qpack(char *at, struct slice line) {
	struct slice value, name = split(line, &value);
	const size_t i = find_known(name);
	if (i < KNOWN && known[i].qpack) return put_value(put_integer(at, 0x50, 4, known[i].qpack), value);
	return put_value(put_name(at, 0x20, 3, name), value);
}

bool hpack_is_common(struct slice line) {
	struct slice value;
	const size_t i = find_known(split(line, &value));
	return i == KNOWN || !known[i].differs;
}

static inline size_t put_fields(struct slice lines, char *out, char *(*put)(char *at, struct slice line)) {
	char *at = out;
	while (lines.length) at = put(at, hpack_next(&lines));
	return (size_t)(at - out);
}

size_t hpack_fields(struct slice lines, char *out) { return put_fields(lines, out, put_hpack); }

size_t qpack_fields(struct slice lines, char *out) { return put_fields(lines, out, put_qpack); }

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

size_t qpack_status(int status, char *out) {
	static const struct {
		int status;
		unsigned entry;
	} indexed[] = {{200, 25}, {304, 26}, {404, 27}, {503, 28}, {100, 63}, {204, 64}, {206, 65},
				   {302, 66}, {400, 67}, {403, 68}, {421, 69}, {425, 70}, {500, 71}, {103, 24}};
	for (size_t i = 0; i < sizeof indexed / sizeof *indexed; i++)
		if (indexed[i].status == status) return (size_t)(put_integer(out, 0xc0, 6, indexed[i].entry) - out);
	char *at = put_integer(out, 0x50, 4, indexed[0].entry);
	*at++ = 3;
	return (size_t)(text_copy_number(at, (uint64_t)status) - out);
}
