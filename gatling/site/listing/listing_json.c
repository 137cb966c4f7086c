/* listing_json.c - a listing in JSON (RFC 8259), which is UTF-8 whatever bytes names have. listing.h describes it. */
#include "gatling/base/utf8.h"
#include "gatling/site/listing/listing_writer.h"

static void write_head(FILE *out, struct slice title, const struct listing_summary *summary) {
	(void)title, (void)summary;
	fputs("[", out);
}

static void write_foot(FILE *out, const struct listing_summary *summary) {
	if (summary->more) fputs(summary->folders + summary->files ? ",\n{\"type\":\"more\"}" : "{\"type\":\"more\"}", out);
	fputs("]\n", out);
}

/* Appends a name. Returns whether it is UTF-8. */
static bool add_name(struct text *out, struct slice name) {
	bool valid = true;
	while (name.length) {
		uint32_t c;
		struct slice character = {.at = name.at, .length = utf8_character(name, &c)};
		char escaped[8];
		slice_drop(&name, character.length);
		valid &= c != UTF8_INVALID;
		if (c == UTF8_INVALID) character = SLICE("\uFFFD");
		else if (c < ' ' || c == '"' || c == '\\')
			character = (struct slice){.at = escaped, .length = fmt_escapecharjson(escaped, c)};
		text_add(out, character);
	}
	return valid;
}

static void add_row(struct text *out, const struct listing_entry *entry, const struct listing_entry *previous) {
	struct slice name = slice_of(entry->name);
	char room[LISTING_DATE_LENGTH];
	struct slice date = listing_date(entry->modified, room);
	text_add(out, previous ? SLICE(",\n{\"name\":\"") : SLICE("{\"name\":\""));
	if (!add_name(out, name)) {
		text_add(out, SLICE("\",\"href\":\""));
		listing_add_link(out, name);
	}
	text_add(out, SLICE("\",\"type\":\""));
	text_add(out, entry->kind == LISTING_DIRECTORY ? SLICE("directory\"") : SLICE("file\""));
	if (entry->kind == LISTING_FILE) {
		text_add(out, SLICE(",\"size\":"));
		text_add_number(out, entry->size);
	}
	if (date.length) {
		text_add(out, SLICE(",\"mtime\":\""));
		text_add(out, date);
		text_add(out, SLICE("\""));
	}
	text_add(out, SLICE("}"));
}

const struct listing_writer listing_json = {.write_head = write_head, .add_row = add_row, .write_foot = write_foot};
