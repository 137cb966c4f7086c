/* alternate.h - files beside a file that show the same in another media type: photo.avif and photo.webp beside
 * photo.jpg, page.md beside page.html. They are sent to clients whose Accept names their type. */
#ifndef GATLING_MEDIA_ALTERNATE_H
#define GATLING_MEDIA_ALTERNATE_H

#include "gatling/base/file_version.h"
#include "gatling/base/slice.h"

/* Of pictures that a client likes as much and that are as large, the first one here is preferred. */
enum alternate { ALTERNATE_AVIF, ALTERNATE_WEBP, ALTERNATE_MARKDOWN, ALTERNATES };

enum {
	ALTERNATE_SUFFIX_MAX = 5, /* bytes of the suffixes of it and its original */
	/* Seconds by which a picture may be older than its original: checkouts write files in the order of their names. */
	ALTERNATE_BEHIND_S = 60
};

extern const struct slice alternate_suffix[ALTERNATES]; /* the file has the suffix in place of the original's */
extern const struct slice alternate_type[ALTERNATES];   /* its media type */

/* Returns the alternates that a file at a path may have, a set of 1 << alternate, and sets *stem to the path without
 * its suffix. */
unsigned alternates_of(struct slice path, struct slice *stem);

/* Returns the media type of an alternate at a path. By its name alone Markdown is text/plain, since some browsers do
 * not show text/markdown. */
const char *alternate_type_of(struct slice path);

/* Returns whether an alternate is not to be sent, since its original is newer: a picture that was not made again. The
 * Markdown of a page may be its source, and older than what was made of it. */
bool alternate_outdated(enum alternate which, const struct file_version *alternate,
						const struct file_version *original);

#endif
