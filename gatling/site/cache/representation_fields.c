/* representation_fields.c - see representation.h: the field lines of a representation. */
#include "gatling/site/cache/representation.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "gatling/base/slice.h"
#include "gatling/http/date.h"
#include "gatling/http/field_line.h"
#include "gatling/site/cache/cache_control.h"

enum {
	DATE_LEFT_OUT = 1 /* second: tools that leave times out set 0 (OSTree) or 1 (Nix, Guix) for each version */
};

/* Writes Content-Encoding, if there is one, and has f refer to its value. */
static char *put_encoding(char *at, struct representation *f, struct slice encoding) {
	f->encoding = f->coding == CODING_IDENTITY ? encoding : coding_name[f->coding];
	if (!f->encoding.at) return at;
	at = field_line_put(at, SLICE("Content-Encoding"), f->encoding);
	f->encoding.at = at - f->encoding.length - strlen("\r\n");
	return at;
}

static char *put_type(char *at, struct representation *f, const struct field_options *o) {
	const struct header_item *type = header_find(o->headers, "Content-Type");
	f->type = type && !type->detach ? type->value : slice_of(o->type);
	if (!type || !type->detach) {
		static const struct slice charset = SLICE("; charset=utf-8");
		char *end = field_line_put(at, SLICE("Content-Type"), f->type) - strlen("\r\n");
		f->type.at = end - f->type.length;
		if (!type && o->utf8) end = text_copy(end, charset);
		f->type.length = (size_t)(end - f->type.at);
		at = text_copy(end, SLICE("\r\n"));
	}
	return header_find(o->headers, "X-Content-Type-Options") ? at : text_copy(at, SLICE(NOSNIFF_LINE));
}

static char *put_validators(char *at, struct representation *f) {
	time_t now = time(NULL), modified = f->version.modified.tv_sec;
	/* no date in the future (RFC 9110, section 8.8.2.1), and none of a year that HTTP cannot write */
	time_t said = modified > now ? now : modified < 0 ? 0 : modified;
	at = text_copy(at, f->gzipped ? SLICE("Accept-Ranges: none\r\n") : SLICE("Accept-Ranges: bytes\r\n"));
	if (f->validators.etag.at) at = field_line_put(at, SLICE("ETag"), f->validators.etag);
	else if (modified >= now) return at; /* it may change again in this second, and the date is all that a client has */
	if (coding_is_difference(f->coding) && f->validators.etag.at) return at; /* who takes it keeps entity-tags */
	at = text_copy(at, SLICE("Last-Modified: "));
	if (said == modified && modified > DATE_LEFT_OUT) {
		f->validators.last_modified = modified;
		f->validators.date = (struct slice){.at = at, .length = DATE_LENGTH};
	}
	at += date_format(at, said);
	return text_copy(at, SLICE("\r\n"));
}

static char *put_vary(char *at, const struct field_options *o) {
	const struct header_item *vary = header_find(o->headers, "Vary");
	bool owned = vary && !vary->detach;
	if (o->offer.at && o->match.at) return text_copy(at, SLICE("Vary: *\r\n"));
	if (!o->varies) return owned ? field_line_put(at, SLICE("Vary"), vary->value) : at;
	at = text_copy(at, SLICE("Vary: Accept-Encoding"));
	if (o->match.at) at = text_copy(at, SLICE(", Available-Dictionary"));
	if (owned) at = TEXT_JOIN(at, SLICE(", "), vary->value);
	return text_copy(at, SLICE("\r\n"));
}

static char *put_always(char *at, const struct field_options *o) {
	const struct header_item *owners = header_find(o->headers, "Cache-Control");
	bool overruled = owners && o->is_substitute && (o->error || cache_control_is_page(o->type)) && header_lasts(owners);
	at = put_vary(at, o);
	if (o->match.at) at = field_line_put(at, SLICE("Use-As-Dictionary"), o->match);
	if (o->cache_control.at && (!owners || overruled))
		at = field_line_put(at, SLICE("Cache-Control"), o->cache_control);
	for (unsigned i = 0; o->headers && i < o->headers->count; i++) {
		const struct header_item *item = &o->headers->item[i];
		if (item->detach || header_named(item, "Vary") || header_named(item, "Content-Type") ||
			header_named(item, "Content-Encoding"))
			continue;
		if (item != owners || !overruled) at = field_line_put(at, item->name, item->value);
	}
	return at;
}

static char *put_offered(char *at, const struct field_options *o) {
	struct field_options offered = *o;
	offered.match = o->offer;
	offered.cache_control = cache_control_offered;
	return o->offer.at ? put_always(at, &offered) : at;
}

/* Copies the fields of the origin that follow the validators. The difference to a dictionary is sent only to those who
 * are offered the page as another. */
static char *copy_always(char *at, const struct representation *f, const struct representation *origin) {
	const bool offers = coding_is_difference(f->coding) && origin->offered.at;
	return text_copy(at, offers ? origin->offered : slice_rest(origin->fields, origin->always_at));
}

/* Returns the lines of the media type, which follow that of the coding. */
static struct slice type_lines(const struct representation *f) {
	struct slice lines = {.at = f->fields.at + f->type_at, .length = f->validators_at - f->type_at};
	if (f->encoding.at) slice_drop(&lines, slice_until(lines, '\n') + 1);
	return lines;
}

/* Has a value that is in the text refer to the copy; others are static, or absent. */
static void follow(struct slice *value, const char *text, size_t length, const char *copy) {
	const size_t at = (uintptr_t)value->at - (uintptr_t)text;
	if (at < length) value->at = copy + at;
}

/* Copies the fields to memory of their own, with room for the block behind them. Returns 0 or ENOMEM. */
static int keep_text(struct representation *f, const char *text) {
	const size_t length = f->fields.length + f->offered.length;
	f->text_size = length + HPACK_BOUND(f->fields.length);
	if (f->offered.length) f->text_size += HPACK_BOUND(f->always_at) + HPACK_BOUND(f->offered.length);
	char *kept = malloc(f->text_size);
	f->fields.at = kept;
	if (!kept) return ENOMEM;
	memcpy(kept, text, length);
	follow(&f->offered, text, length, kept);
	follow(&f->validators.date, text, f->fields.length, kept);
	follow(&f->type, text, f->fields.length, kept);
	follow(&f->encoding, text, f->fields.length, kept);
	return 0;
}

const struct ready_block *representation_block(struct representation *f, bool offered, struct shared_lines *lines) {
	char *const out = (char *)f->fields.at + f->fields.length + f->offered.length;
	if (offered && f->offered.length) {
		char *const second = out + HPACK_BOUND(f->fields.length);
		if (f->offered_block.rest.at) return &f->offered_block;
		ready_block_add(&f->offered_block, lines, slice_first(f->fields, f->always_at), second);
		ready_block_add(&f->offered_block, lines, f->offered, second);
		return &f->offered_block;
	}
	if (!f->block.rest.at) ready_block_add(&f->block, lines, f->fields, out);
	return &f->block;
}

/* Copies the lines of the media type, and has type refer to the copy. */
static char *copy_type(char *at, struct representation *f, const struct representation *origin) {
	const struct slice lines = type_lines(origin);
	f->type = origin->type;
	follow(&f->type, lines.at, lines.length, at);
	return text_copy(at, lines);
}

/* Writes the fields of the options, or if o is NULL, those of the origin except for length, coding and validators.
 * Returns 0 or ENOMEM. */
static int write_fields(struct representation *f, const struct field_options *o, const struct representation *origin) {
	size_t owned = o && o->headers ? (o->offer.at ? 2 : 1) * o->headers->octets : 0;
	size_t room =
		REPRESENTATION_FIELDS_MAX + (o ? strlen(o->type) + owned : origin->fields.length + origin->offered.length);
	char small[2 * REPRESENTATION_FIELDS_MAX], *text = room <= sizeof small ? small : malloc(room);
	if (!text) return ENOMEM;
	char *at = field_line_put_length(text, f->size);
	f->type_at = (size_t)(at - text);
	const bool same = origin && origin->coding == f->coding;
	at = put_encoding(at, f, o ? o->encoding : same ? origin->encoding : (struct slice){0});
	at = o ? put_type(at, f, o) : copy_type(at, f, origin);
	f->validators_at = (size_t)(at - text);
	at = put_validators(at, f);
	f->always_at = (size_t)(at - text);
	at = o ? put_always(at, o) : copy_always(at, f, origin);
	f->fields = (struct slice){.at = text, .length = (size_t)(at - text)};
	const char *end = o ? put_offered(at, o) : coding_is_difference(f->coding) ? at : text_copy(at, origin->offered);
	if (end > at) f->offered = (struct slice){.at = at, .length = (size_t)(end - at)};
	assert((size_t)(end - text) <= room);
	int error = keep_text(f, text);
	if (text != small) free(text);
	return error;
}

int representation_write_fields(struct representation *f, const struct field_options *o) {
	f->coding = o->coding;
	free(f->start);
	f->start = NULL;
	return write_fields(f, o, NULL);
}

int representation_derive_fields(struct representation *f, const struct representation *origin) {
	return write_fields(f, NULL, origin);
}
