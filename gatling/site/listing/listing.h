/* listing.h - a directory as a page for people or for programs: collected once, then written piece by piece as it is
 * sent, any number of times. */
#ifndef GATLING_SITE_LISTING_LISTING_H
#define GATLING_SITE_LISTING_LISTING_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "gatling/base/docroot.h"
#include "gatling/http/coding.h"

enum {
	LISTING_ENTRIES_MAX = 1000000,        /* of one; what is found after that is left out, and the listing says so */
	LISTING_BYTES_MAX = 128 * 1024 * 1024 /* of the names and what is known of them, the same */
};

/* LISTING_HTML: text/html, in UTF-8. LISTING_JSON: application/json, an array of objects with
 *     "name"   a string; bytes that are no UTF-8 are U+FFFD, and then there is also
 *     "href"   the name percent-encoded;
 *     "type"   "directory" or "file";
 *     "size"   in bytes, of files alone, and not of one that leads to another server;
 *     "mtime"  the time of the last change, "2006-01-02T15:04:05Z"; none of a year before 1 or after 9999.
 * If entries are left out, the last object is {"type":"more"}. */
enum listing_format { LISTING_HTML, LISTING_JSON };

struct listing_request {
	const char *path; /* of the directory, relative to the docroot's root, "." for the root itself */
	/* the decoded path that the client asked for, without its first and with its last slash; empty at the root of a
	 * site, where _headers and _redirects are not shown */
	struct slice title;
	enum listing_format format;
	enum coding coding; /* CODING_GZIP: compressed, if that makes it smaller; else CODING_IDENTITY */
	size_t bytes;       /* at most LISTING_BYTES_MAX */
};

struct listing;

/* Lists what would be served of a directory, folders first, then by name (natural_order.h). May run in any thread, and
 * of the docroot uses docroot_open() and docroot_stat() alone. 0 with a reference in *listing; or an errno: ENOENT,
 * ENOTDIR, EACCES (also: not world-readable), ENOMEM, ECANCELED (*stop has become true; stop may be NULL), ... */
int listing_make(const struct docroot *docroot, const struct listing_request *wanted, const atomic_bool *stop,
				 struct listing **listing);

/* What follows is for one thread at a time: references are not counted atomically. */

/* A further reference; listing_release() gives it back, and has the form of an iob_release. */
void listing_retain(struct listing *listing);
void listing_release(void *listing);

/* Bytes of it when written: the same each time. And in which coding that is. */
uint64_t listing_length(const struct listing *listing);
enum coding listing_coding(const struct listing *listing);

/* Bytes of memory that it takes. */
size_t listing_memory(const struct listing *listing);

/* Writes a listing once from its start to its end, with a reference of its own and some KB of memory. NULL: ENOMEM. */
struct listing_reader *listing_read(struct listing *listing);

/* Writes the next bytes to buffer: exactly size, but at the end. How many; -1 with EIO when none are left. Has the form
 * of an iob_fill. */
ssize_t listing_fill(void *reader, char *buffer, size_t size);

/* Frees the reader; has the form of an iob_release. */
void listing_reader_free(void *reader);

#endif
