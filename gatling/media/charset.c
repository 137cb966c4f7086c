/* charset.c - see charset.h. */
#include "gatling/media/charset.h"

#include "gatling/base/slice.h"
#include "gatling/base/utf8.h"

enum { PRESCAN = 1024 }; /* bytes in which browsers look for a <meta> */

static const struct slice byte_order_mark = SLICE("\xef\xbb\xbf"), xml_start = SLICE("<?xml");

static bool is_blank(char c) { return c && strchr(" \t\r\n\f", c); }

static void skip_blanks(struct slice *s) {
	while (s->length && is_blank(s->at[0])) slice_drop(s, 1);
}

/* Returns the bytes up to the first `end`, and takes them and it off the front of s. Without it, returns all. */
static struct slice take_until(struct slice *s, struct slice end) {
	for (size_t i = 0; i + end.length <= s->length; i++) {
		if (memcmp(s->at + i, end.at, end.length) != 0) continue;
		const struct slice taken = slice_first(*s, i);
		slice_drop(s, i + end.length);
		return taken;
	}
	const struct slice taken = *s;
	slice_drop(s, s->length);
	return taken;
}

/* --- HTML --- */

/* Returns what follows "charset=" in a tag, without quotes, or an empty slice. */
static struct slice charset_in(struct slice tag) {
	for (; tag.length; slice_drop(&tag, 1)) {
		struct slice s = tag;
		if (!slice_starts_nocase(s, SLICE("charset"))) continue;
		slice_drop(&s, strlen("charset"));
		skip_blanks(&s);
		if (!text_skip(&s, SLICE("="))) continue;
		skip_blanks(&s);
		if (s.length && (s.at[0] == '"' || s.at[0] == '\'')) slice_drop(&s, 1);
		size_t n = 0;
		while (n < s.length && !is_blank(s.at[n]) && !strchr("\"';/>", s.at[n])) n++;
		return slice_first(s, n);
	}
	return SLICE("");
}

struct slice charset_of_html(struct slice start) {
	if (start.length > PRESCAN) start.length = PRESCAN;
	while (start.length) {
		(void)take_until(&start, SLICE("<"));
		if (text_skip(&start, SLICE("!--"))) {
			(void)take_until(&start, SLICE("-->"));
			continue;
		}
		if (!slice_starts_nocase(start, SLICE("meta"))) continue;
		const struct slice charset = charset_in(take_until(&start, SLICE(">")));
		if (charset.length) return charset;
	}
	return SLICE("");
}

/* --- UTF-8 --- */

enum content { NOT_UTF8, ASCII, UTF8 };

/* Returns whether a text in ASCII may be in ISO-2022, which writes other characters in ASCII, behind escapes. */
static bool has_shift(struct slice s) {
	for (const char *at; (at = memchr(s.at, '\x1b', s.length));) {
		slice_drop(&s, (size_t)(at - s.at) + 1);
		if (s.length && (s.at[0] == '$' || s.at[0] == '(')) return true;
	}
	return false;
}

/* Returns how many bytes at the front are ASCII, in whole blocks: the compiler compares many at a time. */
static size_t ascii(struct slice s) {
	enum { BLOCK = 64 };
	size_t n = 0;
	for (; n + BLOCK <= s.length; n += BLOCK) {
		uint64_t word[BLOCK / sizeof(uint64_t)], all = 0;
		memcpy(word, s.at + n, BLOCK);
		for (size_t i = 0; i < BLOCK / sizeof *word; i++) all |= word[i];
		if (all & UINT64_C(0x8080808080808080)) break;
	}
	return n;
}

/* Returns what the text is. A NUL is of UTF-16, or of what is no text. */
static enum content examine(const struct slice text, bool more) {
	enum content content = ASCII;
	if (memchr(text.at, '\0', text.length)) return NOT_UTF8;
	for (struct slice s = slice_rest(text, ascii(text)); s.length;) {
		uint32_t c;
		const size_t length = utf8_character(s, &c);
		if (c == UTF8_INVALID && more && utf8_is_incomplete(s)) break;
		if (c == UTF8_INVALID) return NOT_UTF8;
		slice_drop(&s, length);
		if (c < 0x80) continue;
		content = UTF8;
		slice_drop(&s, ascii(s));
	}
	return content == ASCII && has_shift(text) ? NOT_UTF8 : content;
}

static bool is_xml(struct slice type, struct slice start) {
	(void)text_skip(&start, byte_order_mark);
	return slice_equal(type, SLICE("text/xml")) || slice_ends(type, SLICE("+xml")) || slice_starts(start, xml_start);
}

bool charset_is_utf8(struct slice type, struct slice start, bool more) {
	const bool html = slice_equal(type, SLICE("text/html"));
	if (!slice_starts(type, SLICE("text/")) || (!html && is_xml(type, start))) return false;
	const enum content content = examine(start, more);
	if (content != ASCII) return content == UTF8;
	const struct slice own = html ? charset_of_html(start) : SLICE("");
	return own.length ? slice_equal_nocase(own, SLICE("utf-8")) || slice_equal_nocase(own, SLICE("utf8")) : !more;
}

/* --- XML --- */

const char *charset_xml_type(struct slice start) {
	static const struct {
		struct slice root;
		const char *type;
	} types[] = {
		{SLICE("feed"), "application/atom+xml"},
		{SLICE("rdf:RDF"), "application/rdf+xml"},
		{SLICE("rss"), "application/rss+xml"},
		{SLICE("svg"), "image/svg+xml"},
	};
	(void)text_skip(&start, byte_order_mark);
	if (!slice_starts(start, xml_start) || start.length == xml_start.length || !is_blank(start.at[xml_start.length]))
		return NULL;
	while (start.length) {
		(void)take_until(&start, SLICE("<"));
		if (text_skip(&start, SLICE("!--"))) {
			(void)take_until(&start, SLICE("-->"));
			continue;
		}
		if (text_skip(&start, SLICE("?"))) {
			(void)take_until(&start, SLICE("?>"));
			continue;
		}
		if (text_skip(&start, SLICE("!"))) continue;
		size_t n = 0;
		while (n < start.length && !is_blank(start.at[n]) && start.at[n] != '>' && start.at[n] != '/') n++;
		for (size_t i = 0; i < sizeof types / sizeof *types; i++)
			if (slice_equal(slice_first(start, n), types[i].root)) return types[i].type;
		break;
	}
	return "application/xml";
}
