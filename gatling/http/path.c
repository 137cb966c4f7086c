/* path.c - see path.h. */
#include "gatling/http/path.h"

#include "gatling/base/owfat.h"
#include "gatling/base/utf8.h"
#include "gatling/http/chars.h"

bool path_allows(struct slice name) { return !utf8_has_overlong(name); }

/* Decodes s to out, which takes at most s.length bytes. Returns 0, or the status to answer. */
static int percent_decode(struct slice s, char *out, size_t *length) {
	size_t n = 0;
	unsigned char all = 0;
	for (size_t i = 0; i < s.length; i++) {
		char c = s.at[i];
		if (c == '%') {
			if (!path_is_encoded(slice_rest(s, i))) return 400;
			c = (char)path_decode_byte(slice_rest(s, i));
			if (c == '/') return 404; /* data, not a separator; no file name can contain it */
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
	/* in place: writing never overtakes reading */
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

bool path_has_dots(struct slice path) {
	enum { OTHER = 3 };
	unsigned dots = 0; /* that the segment consists of so far; OTHER or more: it has something else */
	bool in_parameter = false;
	for (size_t i = 0; i < path.length; i++) {
		char c = path.at[i];
		const bool encoded = c == '%' && path_is_encoded(slice_rest(path, i));
		if (encoded) {
			c = (char)path_decode_byte(slice_rest(path, i));
			i += 2;
		}
		if (c == '/' || c == '\\') {
			if (dots == 1 || dots == 2) return true;
			dots = 0;
			in_parameter = false;
		} else if (c == ';' && !encoded) {
			in_parameter = true;
		} else if (!in_parameter) {
			dots += c == '.' ? 1 : OTHER;
		}
	}
	return dots == 1 || dots == 2;
}

bool path_is_encoded(struct slice text) {
	return text.length > 2 && text.at[0] == '%' && scan_fromhex((unsigned char)text.at[1]) >= 0 &&
		   scan_fromhex((unsigned char)text.at[2]) >= 0;
}

unsigned char path_decode_byte(struct slice text) {
	return (unsigned char)(scan_fromhex((unsigned char)text.at[1]) * 16 + scan_fromhex((unsigned char)text.at[2]));
}

/* Percent-encodes all characters except unreserved ones and those in `legal`. encoded: keeps percent-encoded bytes,
 * too. */
static size_t encode(struct slice text, const char *legal, bool encoded, char *out) {
	static const char digit[] = "0123456789ABCDEF"; /* fmt_tohex() writes the other case (RFC 3986, section 2.1) */
	size_t n = 0;
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (char_is((char)c, CHAR_UNRESERVED) || (c && strchr(legal, c)) ||
			(encoded && path_is_encoded(slice_rest(text, i)))) {
			out[n++] = (char)c;
		} else {
			out[n++] = '%';
			out[n++] = digit[c >> 4];
			out[n++] = digit[c & 15];
		}
	}
	return n;
}

size_t path_encode(struct slice path, char *out) { return encode(path, "/", false, out); }

size_t path_encode_target(struct slice target, char *out) { return encode(target, "!$&'()*+,;=:@/?", true, out); }
