/* listing_json.c - see listing.h for what it looks like, RFC 8259 for what JSON is: UTF-8, whatever bytes names have.
 */
#include "gatling/base/owfat.h"
#include "gatling/base/utf8.h"
#include "gatling/http/path.h"
#include "gatling/site/listing/listing_form.h"

/* An array has no title. */
static void write_head(FILE *out, struct slice title, const struct summary *summary) {
	(void)title;
	(void)summary;
	fputs("[", out);
}

static void write_foot(FILE *out, const struct summary *summary) {
	if (summary->more) fputs(summary->folders + summary->files ? ",\n{\"type\":\"more\"}" : "{\"type\":\"more\"}", out);
	fputs("]\n", out);
}

/* *valid becomes false if something is lost. */
static char *put_name(char *at, struct slice name, bool *valid) {
	while (name.length) {
		uint32_t c;
		size_t n = utf8_character(name, &c);
		if (c == UTF8_INVALID) {
			at = form_put(at, SLICE("\uFFFD"));
			*valid = false;
		} else if (c < ' ' || c == '"' || c == '\\') {
			at += fmt_escapecharjson(at, c);
		} else {
			at = form_put(at, (struct slice){.at = name.at, .length = n});
		}
		name.at += n;
		name.length -= n;
	}
	return at;
}

static size_t row(const struct listing_entry *entry, const struct listing_entry *previous, char *out) {
	struct slice name = form_name(entry);
	bool valid = true;
	char date[FORM_DATE_LENGTH], *at = out;
	size_t date_length = form_date(entry->modified, date);
	if (previous) at = form_put(at, SLICE(",\n"));
	at = form_put(at, SLICE("{\"name\":\""));
	at = put_name(at, name, &valid);
	if (!valid) {
		at = form_put(at, SLICE("\",\"href\":\""));
		at += path_encode(name, at);
	}
	at = form_put(at,
				  entry->kind == ENTRY_DIRECTORY ? SLICE("\",\"type\":\"directory\"") : SLICE("\",\"type\":\"file\""));
	if (entry->kind == ENTRY_FILE) {
		at = form_put(at, SLICE(",\"size\":"));
		at += fmt_ulonglong(at, entry->size);
	}
	if (date_length) {
		at = form_put(at, SLICE(",\"mtime\":\""));
		at = form_put(at, (struct slice){.at = date, .length = date_length});
		at = form_put(at, SLICE("\""));
	}
	return (size_t)(form_put(at, SLICE("}")) - out);
}

const struct form form_json = {.write_head = write_head, .row = row, .write_foot = write_foot};
