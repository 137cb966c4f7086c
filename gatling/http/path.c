/* path.c - see path.h. */
#include "gatling/http/path.h"

#include "gatling/base/owfat.h"
#include "gatling/base/utf8.h"

bool path_allows(struct slice name) { return !utf8_has_overlong(name); }

/* 0, or a status. Writes the decoded bytes, of at most the same length, to out. */
static int percent_decode(struct slice s, char *out, size_t *length) {
	size_t n = 0;
	unsigned char all = 0;
	for (size_t i = 0; i < s.length; i++) {
		char c = s.at[i];
		if (c == '%') {
			int high = i + 2 < s.length ? scan_fromhex((unsigned char)s.at[i + 1]) : -1;
			int low = i + 2 < s.length ? scan_fromhex((unsigned char)s.at[i + 2]) : -1;
			if (high < 0 || low < 0) return 400;
			c = (char)(high * 16 + low);
			if (c == '/') return 404; /* data, not a separator: no file name can hold it */
			i += 2;
		}
		if (c == '\0') return 400;
		all |= (unsigned char)c;
		out[n++] = c;
	}
	*length = n;
	return all >= 0x80 && utf8_has_overlong((struct slice){.at = out, .length = n}) ? 400 : 0;
}

int path_decode(struct slice encoded, char *out, size_t *length) {
	size_t decoded, used = 0;
	unsigned depth = 0;
	int status = percent_decode(encoded, out, &decoded);
	if (status) return status;
	/* in place: what is written never passes what is read */
	for (size_t at = 0; at < decoded;) {
		const char *slash = memchr(out + at, '/', decoded - at);
		size_t end = slash ? (size_t)(slash - out) : decoded;
		struct slice segment = {.at = out + at, .length = end - at};
		at = end + 1;
		if (segment.length == 0 || slice_equal(segment, SLICE("."))) continue;
		if (slice_equal(segment, SLICE(".."))) {
			if (used) used--; /* its slash */
			while (used && out[used - 1] != '/') used--;
			depth -= depth > 0;
			continue;
		}
		if (segment.at[0] == '.' && (used || !slice_equal(segment, SLICE(".well-known")))) return 404;
		if (++depth > PATH_SEGMENTS_MAX) return 404;
		memmove(out + used, segment.at, segment.length);
		used += segment.length;
		if (slash) out[used++] = '/';
	}
	*length = used;
	return 0;
}

static size_t put_encoded(char *out, unsigned char c) {
	static const char digit[] = "0123456789ABCDEF"; /* fmt_tohex() has the other case (RFC 3986, section 2.1) */
	out[0] = '%';
	out[1] = digit[c >> 4];
	out[2] = digit[c & 15];
	return 3;
}

static bool is_unreserved(char c) {
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c && strchr("-._~", c));
}

size_t path_encode(struct slice path, char *out) {
	size_t n = 0;
	for (size_t i = 0; i < path.length; i++) {
		if (is_unreserved(path.at[i]) || path.at[i] == '/') out[n++] = path.at[i];
		else n += put_encoded(out + n, (unsigned char)path.at[i]);
	}
	return n;
}

bool path_is_encoded(struct slice text) {
	return text.length > 2 && text.at[0] == '%' && scan_fromhex((unsigned char)text.at[1]) >= 0 &&
		   scan_fromhex((unsigned char)text.at[2]) >= 0;
}

size_t path_encode_target(struct slice target, char *out) {
	size_t n = 0;
	for (size_t i = 0; i < target.length; i++) {
		char c = target.at[i];
		struct slice rest = {.at = target.at + i, .length = target.length - i};
		bool legal = is_unreserved(c) || (c && strchr("!$&'()*+,;=:@/?", c)) || path_is_encoded(rest);
		if (legal) out[n++] = c;
		else n += put_encoded(out + n, (unsigned char)c);
	}
	return n;
}
