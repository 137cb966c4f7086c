/* file.h - one representation of a resource, ready to be sent: a file that is opened and checked, small ones in memory,
 * or what has been made of one; with its field lines. */
#ifndef GATLING_FILE_H
#define GATLING_FILE_H

#include <stdint.h>

#include "gatling/coding.h"
#include "gatling/header_rules.h"
#include "gatling/identity.h"
#include "gatling/precondition.h"

enum {
	/* Bytes of a file that is kept in memory; a larger one keeps a descriptor. Linux 6.18, processor time of
	 * sendfile(2) as a ratio to that of sending from memory: 16 KB 1.04 to 1.2, 32 KB 0.9, 64 KB 0.96, 100 KB 0.8, 10
	 * MB 0.9. */
	FILE_BODY_MAX = 64 * 1024
};

/* Goes with every Content-Type: what it says holds (https://fetch.spec.whatwg.org/#x-content-type-options-header). */
#define FILE_NOSNIFF "X-Content-Type-Options: nosniff\r\n"

/* One state of one file in one coding: never changes, freed with the last reference. */
struct file {
	uint64_t size;    /* of the representation */
	const char *body; /* of size bytes, or NULL: */
	int fd;           /* read it from here; -1 with a body */
	bool gzipped;     /* body or fd hold gzip, of stored bytes, that has to be unpacked on the way: size bytes then */
	uint64_t stored;
	enum coding coding;
	const char *type;             /* the value of Content-Type */
	struct validators validators; /* without an entity-tag as long as the content of a large file is not known */
	/* Content-Length; Content-Type with Content-Encoding and FILE_NOSNIFF; Accept-Ranges, ETag and Last-Modified; Vary,
	 * Cache-Control and what else the owner says: each line with its CRLF */
	struct slice fields;
	struct slice block;                      /* the same as a header block of HPACK */
	size_t type_at, validators_at, owner_at; /* where in fields the second, third and fourth part start */
};

/* What the fields of a file say that the file itself does not. */
struct dress {
	const char *type; /* by its name */
	enum coding coding;
	bool varies;                      /* it depends on Accept-Encoding */
	struct slice cache_control;       /* absent: none */
	const struct header_set *headers; /* the owner's, they overrule; NULL: none */
	bool stands_in, error;            /* for another file: then an error, or a page, does not last as he says of that */
};

/* A further reference; file_release() gives it back, and has the form of an iob_release. */
void file_retain(struct file *file);
void file_release(void *file);

/* Takes fd over and loads the file. 0 with *file, still without fields; or an errno. EACCES: it is not regular, not
 * world-readable, or a private key, which path tells. *open is one more as long as the file keeps a descriptor. */
int file_load(int fd, struct slice path, unsigned *open, struct file **file);

/* Writes the fields; before it is sent for the first time. 0 or ENOMEM. */
int file_dress(struct file *file, const struct dress *dress);

/* What has been made of a file, with the same fields but for those of the coding. NULL: ENOMEM. body is malloc'd and
 * taken over; *account is the larger by file_memory() as long as there is a reference. */
struct file *file_packed(struct file *identity, char *body, uint64_t size, size_t *account);
struct file *file_unpacked(struct file *gzip, uint64_t size); /* size: of what is packed in it */

/* The same file, of which the content is known now: with an entity-tag (see digest.h). NULL: ENOMEM. */
struct file *file_tagged(struct file *file, const unsigned char *digest);

/* Whether somebody else has a reference, too. */
bool file_shared(const struct file *file);

/* What stat(2) said when it was loaded. */
const struct identity *file_identity(const struct file *file);

/* Bytes of memory that it takes, without its own structure. */
size_t file_memory(const struct file *file);

/* Whether it is text by its first FILE_START bytes (utf8_is_text()). */
enum { FILE_START = 1024 };
bool file_is_text(const struct file *file);

/* Whether it is open, and no name leads to it any more. */
bool file_gone(const struct file *file);

/* What is served from a descriptor may change in place at any time: whether it has, so that its bytes never go out
 * under the entity-tag of others. */
bool file_changed(const struct file *file);

#endif
