/* listing_form.h - between listing.c, which collects, and listing_html.c and listing_json.c, which write. */
#ifndef GATLING_SITE_LISTING_LISTING_FORM_H
#define GATLING_SITE_LISTING_LISTING_FORM_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "gatling/base/slice.h"

/* A link to another server is shown as a file of unknown size. */
enum entry_kind { ENTRY_DIRECTORY, ENTRY_FILE, ENTRY_ELSEWHERE };

struct listing_entry {
	const char *name; /* at most NAME_MAX bytes, and a NUL */
	uint64_t kind : 2, size : 62;
	int64_t modified; /* seconds since 1970 */
};

struct summary {
	size_t folders, files;
	uint64_t bytes; /* of the files */
	bool more;      /* than are listed */
	size_t closed;  /* left out: not readable by everyone */
};

enum {
	FORM_CHARACTER_MAX = 6, /* bytes as which a byte of a name may be written */
	FORM_ROW_MAX = (FORM_CHARACTER_MAX + 3) * NAME_MAX + 256,
	FORM_DATE_LENGTH = sizeof "2006-01-02T15:04:05Z" - 1
};

struct form {
	void (*write_head)(FILE *out, struct slice title, const struct summary *summary);
	/* Writes an entry to out (FORM_ROW_MAX bytes) that comes behind another one, or NULL. The bytes written. */
	size_t (*row)(const struct listing_entry *entry, const struct listing_entry *previous, char *out);
	void (*write_foot)(FILE *out, const struct summary *summary);
};

extern const struct form form_html, form_json;

/* Writes a date in the format of RFC 3339 to out (FORM_DATE_LENGTH). The bytes written; 0: of no year from 1 to 9999.
 */
size_t form_date(int64_t seconds, char *out);

static inline char *form_put(char *at, struct slice s) {
	memcpy(at, s.at, s.length);
	return at + s.length;
}

static inline struct slice form_name(const struct listing_entry *entry) {
	return (struct slice){.at = entry->name, .length = strlen(entry->name)};
}

#endif
