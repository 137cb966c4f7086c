/* listing_writer.h - the formats of listings: listing.c collects entries, listing_html.c and listing_json.c write them.
 */
#ifndef GATLING_SITE_LISTING_LISTING_WRITER_H
#define GATLING_SITE_LISTING_LISTING_WRITER_H

#include <limits.h>
#include <stdio.h>

#include "gatling/base/slice.h"

/* A link to another server is shown as a file of unknown size. */
enum listing_kind { LISTING_DIRECTORY, LISTING_FILE, LISTING_ELSEWHERE };

struct listing_entry {
	const char *name; /* at most NAME_MAX bytes, and a NUL */
	uint64_t kind : 2, size : 62;
	int64_t modified; /* seconds since 1970 */
};

struct listing_summary {
	size_t folders, files;
	uint64_t bytes;    /* of the files */
	bool more;         /* there are more entries than are listed */
	size_t unreadable; /* entries that are left out because not everyone may read them */
};

enum {
	LISTING_CHARACTER_MAX = 6, /* bytes that a byte of a name may become */
	LISTING_ROW_MAX = (LISTING_CHARACTER_MAX + 3) * NAME_MAX + 256,
	LISTING_DATE_LENGTH = sizeof "2006-01-02T15:04:05Z" - 1
};

struct listing_writer {
	void (*write_head)(FILE *out, struct slice title, const struct listing_summary *summary);
	/* Appends an entry, which takes at most LISTING_ROW_MAX bytes. previous: the entry before it, or NULL. */
	void (*add_row)(struct text *out, const struct listing_entry *entry, const struct listing_entry *previous);
	void (*write_foot)(FILE *out, const struct listing_summary *summary);
};

extern const struct listing_writer listing_html, listing_json;

/* Writes a date in the format of RFC 3339 to out (LISTING_DATE_LENGTH bytes). Returns it; it is empty if the year is
 * not from 1 to 9999. */
struct slice listing_date(int64_t seconds, char *out);

/* Appends a name percent-encoded. */
void listing_add_link(struct text *out, struct slice name);

#endif
