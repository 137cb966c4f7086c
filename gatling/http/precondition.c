/* precondition.c - see precondition.h. */
#include "gatling/http/precondition.h"

#include "gatling/base/slice.h"
#include "gatling/http/date.h"

/* Removes an entity-tag (section 8.8.3) and the separators before it from the front of list. Returns false at the end,
 * or if something else follows. */
static bool take_etag(struct slice *list, struct slice *etag, bool *weak) {
	while (list->length && strchr(" \t,", list->at[0])) slice_drop(list, 1);
	*weak = text_skip(list, SLICE("W/"));
	if (!list->length || list->at[0] != '"') return false;
	size_t length = 1 + slice_until(slice_rest(*list, 1), '"');
	if (length == list->length) return false;
	*etag = slice_first(*list, length + 1);
	slice_drop(list, etag->length);
	return true;
}

/* Returns whether any line of the field has "*" or the entity-tag. strong: weak entity-tags do not match. */
static bool etag_listed(const struct request *r, enum field_name name, struct slice etag, bool strong) {
	for (unsigned i = 0; i < r->fields; i++) {
		if (r->field[i].name != name) continue;
		struct slice list = r->field[i].value;
		if (slice_equal(list, SLICE("*"))) return true;
		bool weak;
		for (struct slice one; take_etag(&list, &one, &weak);)
			if (slice_equal(one, etag) && !(strong && weak)) return true;
	}
	return false;
}

/* Returns whether any line of the field has what may be the entity-tag, which is not known. strong: as above. */
static bool etag_may_be_listed(const struct request *r, enum field_name name, const struct validators *v, bool strong) {
	for (unsigned i = 0; i < r->fields; i++) {
		if (r->field[i].name != name) continue;
		struct slice list = r->field[i].value;
		bool weak;
		for (struct slice one; take_etag(&list, &one, &weak);)
			if (!(strong && weak) && (!v->etag_end.at || slice_ends(one, v->etag_end))) return true;
	}
	return false;
}

/* Returns the value of a field that came exactly once, or an absent slice. */
static struct slice only_field(const struct request *r, enum field_name name) {
	return request_has(r, name) && !request_repeats(r, name) ? request_field(r, name) : (struct slice){0};
}

/* Parses a date to compare with that of the representation. Returns false if field is not a date, or the representation
 * has none. Most clients return the date that they got, which need not be parsed. */
static inline bool parse_date(struct slice field, const struct validators *v, time_t *date) {
	if (!field.at || !v->date.at) return false;
	*date = v->last_modified;
	return slice_equal(field, v->date) || date_parse(field, date);
}

/* Returns whether field is the date of the representation, and a strong validator. */
static bool is_exact_date(struct slice field, const struct validators *v) {
	time_t date;
	return parse_date(field, v, &date) && date == v->last_modified && date < time(NULL);
}

/* Returns whether If-Modified-Since decides in place of If-None-Match: the entity-tag is not known yet, but the client
 * has one that ends as it will, with the size, and exactly the date of the representation. A later date does not count
 * here, as an older file may have taken the place of the one that the client has. */
static bool date_stands_for_etag(const struct request *r, const struct validators *v) {
	return !v->etag.at && v->etag_end.at && etag_may_be_listed(r, FIELD_IF_NONE_MATCH, v, false) &&
		   is_exact_date(only_field(r, FIELD_IF_MODIFIED_SINCE), v);
}

int precondition_status(const struct request *r, const struct validators *v) {
	time_t date;
	if (request_has(r, FIELD_IF_MATCH)) {
		if (!etag_listed(r, FIELD_IF_MATCH, v->etag, true)) return 412;
	} else if (parse_date(only_field(r, FIELD_IF_UNMODIFIED_SINCE), v, &date)) {
		if (v->last_modified > date) return 412;
	}
	if (request_has(r, FIELD_IF_NONE_MATCH)) {
		if (etag_listed(r, FIELD_IF_NONE_MATCH, v->etag, false) || date_stands_for_etag(r, v)) return 304;
	} else if (parse_date(only_field(r, FIELD_IF_MODIFIED_SINCE), v, &date)) {
		if (v->last_modified <= date) return 304;
	}
	return 0;
}

/* Returns If-None-Match, if it may be searched for several entity-tags, or an absent slice. */
static struct slice short_list(const struct request *r) {
	const struct slice list = only_field(r, FIELD_IF_NONE_MATCH);
	const bool overruled = request_has(r, FIELD_IF_MATCH) || request_has(r, FIELD_IF_UNMODIFIED_SINCE);
	return overruled || list.length > PRECONDITION_TAGS_MAX ? (struct slice){0} : list;
}

struct slice precondition_starting(const struct request *r, struct slice start) {
	struct slice list = short_list(r);
	bool weak;
	for (struct slice one; take_etag(&list, &one, &weak);)
		if (slice_starts(one, start)) return one;
	return (struct slice){0};
}

/* One that begins with a whole entity-tag is that, since a quotation mark ends both. */
bool precondition_has(const struct request *r, struct slice etag) {
	return etag.at && precondition_starting(r, etag).at;
}

bool precondition_range(const struct request *r, const struct validators *v) {
	if (!request_has(r, FIELD_IF_RANGE)) return true;
	struct slice field = only_field(r, FIELD_IF_RANGE);
	if (!field.at) return false;
	return (v->etag.at && slice_equal(field, v->etag)) || is_exact_date(field, v);
}

enum etag_use precondition_etag_use(const struct request *r, const struct validators *v) {
	time_t date;
	if (etag_may_be_listed(r, FIELD_IF_MATCH, v, true) || etag_may_be_listed(r, FIELD_IF_RANGE, v, true))
		return ETAG_AWAITED;
	if (etag_may_be_listed(r, FIELD_IF_NONE_MATCH, v, false)) {
		const bool dated = v->etag_end.at && parse_date(only_field(r, FIELD_IF_MODIFIED_SINCE), v, &date);
		return dated ? ETAG_USEFUL : ETAG_AWAITED;
	}
	return request_has(r, FIELD_RANGE) ? ETAG_UNUSED : ETAG_SENT;
}
