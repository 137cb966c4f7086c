/* upstream_coding.c - see upstream_coding.h. */
#include "gatling/upstream/upstream_coding.h"

#include "gatling/base/slice.h"
#include "gatling/codec/gzip.h"
#include "gatling/codec/zstd.h"
#include "gatling/http/field_line.h"

static bool is(const struct upstream_field *field, struct slice name) { return slice_equal_nocase(field->name, name); }

enum coding upstream_coding_wanted(const struct request *q) {
	const unsigned made = 1U << CODING_GZIP | (zstd_is_built ? 1U << CODING_ZSTD : 0);
	return q->minor >= 1 ? (enum coding)coding_choose(q, 1U << CODING_IDENTITY | made) : CODING_IDENTITY;
}

bool upstream_coding_suits(const struct upstream_response *r, struct slice lines) {
	const bool has_length = r->framing == BODY_LENGTH || r->content_length;
	bool worthwhile = r->status == 304; /* most have no type */
	if (r->status < 200 || r->status == 204 || r->status == 206) return false;
	if (has_length && r->content_length < GZIP_LEAST) return false;
	for (struct upstream_field f; upstream_next_field(&lines, &f);) {
		if (is(&f, SLICE("content-type"))) worthwhile = gzip_worthwhile(f.value);
		if (is(&f, SLICE("content-encoding")) || is(&f, SLICE("content-range"))) return false;
		if (is(&f, SLICE("cache-control")) && slice_has_element_nocase(f.value, SLICE("no-transform"))) return false;
	}
	return worthwhile;
}

bool upstream_coding_lasts(struct slice lines) {
	for (struct upstream_field f; upstream_next_field(&lines, &f);)
		if (is(&f, SLICE("content-type"))) return slice_starts_nocase(f.value, SLICE("text/event-stream"));
	return false;
}

/* Returns whether a field describes the uncompressed content. */
static bool is_of_identity(const struct upstream_field *f) {
	static const struct slice names[] = {SLICE("content-length"), SLICE("accept-ranges"), SLICE("content-digest"),
										 SLICE("repr-digest"),    SLICE("digest"),        SLICE("content-md5")};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is(f, names[i])) return true;
	return false;
}

size_t upstream_coding_lines(const struct upstream_response *r, struct slice lines, enum coding coding, char *out) {
	const bool compressed = coding != CODING_IDENTITY;
	char *at = out;
	bool varies = false;
	for (struct upstream_field f; upstream_next_field(&lines, &f);) {
		varies |= is(&f, SLICE("vary")) && (slice_has_element_nocase(f.value, SLICE("*")) ||
											slice_has_element_nocase(f.value, SLICE("accept-encoding")));
		if (compressed && is_of_identity(&f)) continue;
		if (!compressed || !is(&f, SLICE("etag")) || slice_starts(f.value, SLICE("W/"))) {
			at = field_line_put(at, f.name, f.value);
			continue;
		}
		at = TEXT_JOIN(at, f.name, SLICE(": W/"), f.value, SLICE("\r\n"));
	}
	if (compressed && r->status != 304) at = field_line_put(at, SLICE("Content-Encoding"), coding_name[coding]);
	if (!varies) at = text_copy(at, SLICE("Vary: Accept-Encoding\r\n"));
	return (size_t)(at - out);
}
