/* listing.h - lists a directory, in HTML for people or in JSON for programs. A listing is collected once and can then
 * be written any number of times, piece by piece as it is sent. */
#ifndef GATLING_SITE_LISTING_LISTING_H
#define GATLING_SITE_LISTING_LISTING_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "gatling/files/docroot.h"
#include "gatling/http/coding.h"

/* Limits; what exceeds them is left out, and the listing says so. */
enum {
	LISTING_ENTRIES_MAX = 1000000,        /* entries of a listing */
	LISTING_BYTES_MAX = 128 * 1024 * 1024 /* bytes of names and entries */
};

/* LISTING_HTML: text/html, in UTF-8. LISTING_JSON: application/json, an array of objects with
 *     "name"   a string; bytes that are not UTF-8 are U+FFFD, and then there is also
 *     "href"   the name percent-encoded;
 *     "type"   "directory" or "file";
 *     "size"   in bytes, only of files that are on this server;
 *     "mtime"  the time of the last change, "2006-01-02T15:04:05Z", unless its year is before 1 or after 9999.
 * If entries are left out, the last object is {"type":"more"}. */
enum listing_format { LISTING_HTML, LISTING_JSON };

/* Returns the format for a query (with its '?', or absent): LISTING_JSON for "format=json", otherwise LISTING_HTML. */
enum listing_format listing_format_of(struct slice query);

struct listing_request {
	const char *path;   /* of the directory, relative to the docroot's root, "." for the root itself */
	struct slice title; /* the decoded path of the request, without its leading but with its trailing slash */
	bool of_site;       /* it is the directory of a site: _headers and _redirects are not listed */
	enum listing_format format;
	enum coding coding; /* CODING_GZIP: compressed, if that makes it smaller; else CODING_IDENTITY */
	size_t bytes;       /* at most LISTING_BYTES_MAX */
};

struct listing;

/* Lists the files of a directory that would be served, folders first, then by name (natural_order.h). May run in any
 * thread: it uses the docroot only for docroot_open() and docroot_stat(). Returns 0 with a reference in *listing, or an
 * errno: ENOENT, ENOTDIR, EACCES (also: not world-readable), ENOMEM, ECANCELED (*stop has become true; stop may be
 * NULL), ... */
int listing_make(const struct docroot *docroot, const struct listing_request *request, const atomic_bool *stop,
				 struct listing **listing);

/* The functions below are for one thread at a time: references are not counted atomically. */

/* Releases a reference. Has the type iob_release. */
void listing_release(void *listing);

/* Returns how many bytes are written each time that the listing is read. */
uint64_t listing_length(const struct listing *listing);

enum coding listing_coding(const struct listing *listing);

/* Returns the bytes of memory that the listing takes. */
size_t listing_memory(const struct listing *listing);

/* Adds them to *account until the last reference is released. */
void listing_account(struct listing *listing, size_t *account);

/* Returns a reader, which writes the listing once from start to end, or NULL without memory. It has a reference of its
 * own, and takes at most LISTING_READER bytes of memory. */
enum { LISTING_READER = 12 * 1024 };
struct listing_reader *listing_read(struct listing *listing);

/* Writes the next bytes to the buffer: exactly size, except at the end. Returns how many, or -1 with EIO if none are
 * left. Has the type iob_fill. */
ssize_t listing_fill(void *reader, char *buffer, size_t size);

/* Frees the reader. Has the type iob_release. */
void listing_reader_free(void *reader);

#endif
