/* content_type.c - see content_type.h. */
#include "gatling/media/content_type.h"

#include "gatling/codec/gzip.h"
#include "gatling/base/utf8.h"
#include "gatling/base/workspace.h"
#include "gatling/http/coding.h"
#include "gatling/media/charset.h"
#include "gatling/media/media_type.h"

enum { TEXT_START = 1024 }; /* bytes that tell whether a file is text */

/* The first bytes of the content, decoded. more: there are others; without any, nothing is known of it. */
struct start {
	struct slice bytes;
	bool more;
};

static bool is_gzip(struct slice encoding) {
	return slice_equal_nocase(encoding, SLICE("gzip")) || slice_equal_nocase(encoding, SLICE("x-gzip"));
}

static bool is_svgz(const struct content_source *s) { return s->named && slice_ends_nocase(s->path, SLICE(".svgz")); }

const char *content_type_of_name(const struct content_source *s) {
	return media_type_of(s->encoding.at ? coding_original(s->path) : s->path);
}

/* Returns whether a media type is of TypeScript, too. */
static bool is_transport_stream(const char *type) { return slice_equal(slice_of(type), SLICE("video/mp2t")); }

bool content_type_needs_start(const struct content_source *s) {
	if (!s->named || s->encoding.at || is_svgz(s)) return true;
	return slice_starts(slice_of(s->named), SLICE("text/")) || is_transport_stream(s->named);
}

/* Decides whether the file has a Content-Encoding. */
static struct slice encoding_of(const struct content_source *s) {
	const bool gzip = slice_starts(s->start, SLICE("\x1f\x8b"));
	if (s->packed) return (struct slice){0};
	if (!s->encoding.at) return gzip && is_svgz(s) ? SLICE("gzip") : (struct slice){0};
	return is_gzip(s->encoding) && !gzip && s->start.length ? (struct slice){0} : s->encoding;
}

/* Decodes to out (CONTENT_TYPE_START bytes), or takes the bytes as they are. */
static struct start decode(const struct content_source *s, struct slice encoding, char *out) {
	struct start start = {.bytes = s->start, .more = s->more};
	if (s->packed || (encoding.at && is_gzip(encoding))) {
		bool whole;
		start.bytes = (struct slice){.at = out, .length = gzip_start(s->start, out, CONTENT_TYPE_START, &whole)};
		start.more = !whole;
	} else if (encoding.at) {
		start = (struct start){.bytes = SLICE(""), .more = true};
	}
	return start;
}

static bool is_text(struct start start) {
	const bool longer = start.bytes.length > TEXT_START;
	if (!start.bytes.length && start.more) return false;
	return utf8_is_text(slice_first(start.bytes, longer ? TEXT_START : start.bytes.length), longer || start.more);
}

static const char *type_of_content(struct start start) {
	if (!is_text(start)) return MEDIA_TYPE_UNKNOWN;
	const char *xml = charset_xml_type(start.bytes);
	return xml ? xml : MEDIA_TYPE_TEXT;
}

struct content_type content_type_find(const struct content_source *s) {
	struct content_type found = {.type = s->named ? s->named : MEDIA_TYPE_UNKNOWN};
	found.encoding = encoding_of(s);
	const struct start start = decode(s, found.encoding, WORKSPACE(CONTENT_TYPE_START));
	if (!s->named) found.type = type_of_content(start);
	else if (is_transport_stream(s->named) && is_text(start)) found.type = MEDIA_TYPE_TEXT;
	found.utf8 = charset_is_utf8(slice_of(found.type), start.bytes, start.more);
	return found;
}
