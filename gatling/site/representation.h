/* representation.h - one representation of a resource, ready to be sent: a file that is opened and checked, small ones
 * in memory, or what has been made of one; with its field lines. */
#ifndef GATLING_SITE_REPRESENTATION_H
#define GATLING_SITE_REPRESENTATION_H

#include <stdint.h>

#include "gatling/base/file_version.h"
#include "gatling/base/gzip.h"
#include "gatling/http/coding.h"
#include "gatling/http/precondition.h"
#include "gatling/site/rules/header_rules.h"

enum {
	/* Bytes of a file that is kept in memory; a larger one keeps a descriptor. Linux 6.18, processor time of
	 * sendfile(2) as a ratio to that of sending from memory: 16 KB 1.04 to 1.2, 32 KB 0.9, 64 KB 0.96, 100 KB 0.8, 10
	 * MB 0.9. */
	REPRESENTATION_BODY_MAX = 64 * 1024
};

/* Goes with every Content-Type: what it says holds (https://fetch.spec.whatwg.org/#x-content-type-options-header). */
#define NOSNIFF_LINE "X-Content-Type-Options: nosniff\r\n"

/* One state of one file in one coding: never changes, freed with the last reference. */
struct representation {
	uint64_t size;    /* of the representation */
	const char *body; /* of size bytes, or NULL: */
	int fd;           /* read it from here; -1 with a body */
	bool gzipped;     /* body or fd hold gzip, of stored bytes, that has to be unpacked on the way: size bytes then */
	uint64_t stored;
	enum coding coding;
	const char *type;             /* the value of Content-Type */
	struct validators validators; /* without an entity-tag as long as the content of a large file is not known */
	/* Content-Length; Content-Type with Content-Encoding and NOSNIFF_LINE; Accept-Ranges, ETag and Last-Modified; Vary,
	 * Cache-Control and what else the owner says: each line with its CRLF */
	struct slice fields;
	struct slice block;                      /* the same as a header block of HPACK */
	size_t type_at, validators_at, owner_at; /* where in fields the second, third and fourth part start */
};

/* What the fields of a file say that the file itself does not. */
struct field_options {
	const char *type; /* by its name */
	enum coding coding;
	bool varies;                      /* it depends on Accept-Encoding */
	struct slice cache_control;       /* absent: none */
	const struct header_set *headers; /* the owner's, they overrule; NULL: none */
	bool stands_in, error;            /* for another file: then an error, or a page, does not last as he says of that */
};

/* A further reference; representation_release() gives it back, and has the form of an iob_release. */
void representation_retain(struct representation *file);
void representation_release(void *file);

/* Takes fd over and loads the file. 0 with *file, still without fields; or an errno. EACCES: it is not regular, not
 * world-readable, or a private key, which path tells. *open is one more as long as the file keeps a descriptor. */
int representation_load(int fd, struct slice path, unsigned *open, struct representation **file);

/* Writes the fields; before it is sent for the first time. 0 or ENOMEM. */
int representation_dress(struct representation *file, const struct field_options *dress);

/* What has been made of a file, with the same fields but for those of the coding. NULL: ENOMEM. body is malloc'd and
 * taken over; *account is the larger by representation_memory() as long as there is a reference. */
struct representation *representation_gzipped(struct representation *identity, char *body, uint64_t size,
											  size_t *account);
struct representation *representation_gunzipped(struct representation *gzip,
												uint64_t size); /* size: of what is packed in it */

/* The same file, of which the content is known now: with an entity-tag (see digest.h). NULL: ENOMEM. */
struct representation *representation_tagged(struct representation *file, const unsigned char *digest);

/* What is stored of it, for gzip.h. */
struct gzip_bytes representation_stored(const struct representation *representation);

/* Whether somebody else has a reference, too. */
bool representation_shared(const struct representation *file);

/* What stat(2) said when it was loaded. */
const struct file_version *representation_version(const struct representation *file);

/* Bytes of memory that it takes, without its own structure. */
size_t representation_memory(const struct representation *file);

/* Whether it is text by its first REPRESENTATION_START bytes (utf8_is_text()). */
enum { REPRESENTATION_START = 1024 };
bool representation_is_text(const struct representation *file);

/* Whether it is open, and no name leads to it any more. */
bool representation_gone(const struct representation *file);

/* What is served from a descriptor may change in place at any time: whether it has, so that its bytes never go out
 * under the entity-tag of others. */
bool representation_changed(const struct representation *file);

#endif
