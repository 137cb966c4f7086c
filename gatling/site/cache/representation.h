/* representation.h - a representation of a resource, ready to be sent with its field lines: an open file, a small one
 * in memory, or one that was generated from another. */
#ifndef GATLING_SITE_CACHE_REPRESENTATION_H
#define GATLING_SITE_CACHE_REPRESENTATION_H

#include <stdint.h>

#include "gatling/base/file_version.h"
#include "gatling/codec/gzip.h"
#include "gatling/files/content_hash.h"
#include "gatling/files/remote.h"
#include "gatling/hpack/shared_lines.h"
#include "gatling/http/coding.h"
#include "gatling/http/precondition.h"
#include "gatling/site/cache/encoded.h"
#include "gatling/site/rules/header_rules.h"

enum {
	/* Bytes; a file of up to this size is kept in memory, a larger one keeps a descriptor. Processor time of
	 * sendfile(2) on Linux 6.18, as a multiple of that of sending from memory: 16 KB 1.04 to 1.2, 32 KB 0.9, 64 KB
	 * 0.96, 100 KB 0.8, 10 MB 0.9. */
	REPRESENTATION_BODY_MAX = 64 * 1024,
	/* Bytes; a file of up to this size may be mapped, which saves a copy of each byte sent. The page tables for 1 GB
	 * take 2 MB. */
	REPRESENTATION_MAP_MAX = 1024 * 1024 * 1024
};

/* Limit of the bytes of all field lines that the server itself writes for a representation, without the media type. */
enum { REPRESENTATION_FIELDS_MAX = 900 };

/* Makes browsers believe Content-Type (https://fetch.spec.whatwg.org/#x-content-type-options-header). */
#define NOSNIFF_LINE "X-Content-Type-Options: nosniff\r\n"

/* One version of a file in one coding. It does not change once its fields are written, except for block, which only the
 * worker's thread writes. The last reference frees it. */
struct representation {
	uint64_t size;              /* of the content, in bytes */
	const char *body;           /* the content in memory; NULL: it is in fd */
	int fd;                     /* the file with the content; -1 with a body */
	struct remote_file *remote; /* the same file, if it is on another machine: only its threads use fd; else NULL */
	char *map;                  /* the mapped file, for io/iob.h: reading it may raise SIGBUS; NULL: it is not mapped */
	bool gzipped;               /* body or fd have `stored` bytes of gzip, to be decompressed while sending */
	uint64_t stored;            /* bytes in body or fd */
	enum coding coding;
	struct slice type, encoding;  /* the values of Content-Type and Content-Encoding; absent: none */
	struct validators validators; /* a large file has no entity-tag until it is hashed, only the end of one */
	/* The field lines, each with its CRLF, in four parts, because some statuses leave parts out: Content-Length (not
	 * with 304 and 206); Content-Encoding, Content-Type and NOSNIFF_LINE (not with 304 and a 206 of several ranges);
	 * Accept-Ranges, ETag and Last-Modified (not with error pages); Vary, Cache-Control and the owner's (always). A
	 * 416 has none of them. */
	struct slice fields;
	/* Those that some browsers get in place of the fourth part, so that they keep the file as a dictionary for later
	 * versions (RFC 9842, which has them keep only what is fresh); absent: none. Vary is "*", which never matches: so
	 * they revalidate it each time, as with no-cache (RFC 9111, section 4.1). Chromium and Firefox do. */
	struct slice offered;
	size_t type_at, validators_at, always_at; /* where the second, third and fourth part start */
	struct file_version version;              /* of the file that was loaded */
	/* for representation.c: */
	unsigned references;
	size_t *account;               /* a sum that includes its memory; NULL: none */
	unsigned *open;                /* a count that includes its descriptor; NULL: it has none */
	struct representation *origin; /* the owner of body, fd and map; NULL: this one */
	struct encoded *encoded;       /* the owner of body; NULL: the body is its own, or its origin's */
	char etag[2 * CONTENT_HASH_LENGTH + sizeof "\"-18446744073709551615-dcb-01234567\""];
	char *digest; /* see representation_digest(); NULL until representation_digested() is called */
	struct ready_block block, offered_block; /* see representation_block(); zeros until that is called */
	char *start;                             /* of a remote file, until the fields are written */
	size_t text_size;                        /* bytes allocated for fields, and for the blocks behind them */
};

/* What the fields of a representation depend on, besides the file itself. cache_load.c, which knows the path, fills it
 * in. */
struct field_options {
	const char *type; /* the server's media type, which the owner's replaces */
	bool utf8;        /* it has the charset */
	enum coding coding;
	struct slice encoding;      /* Content-Encoding of the identity; absent: none */
	bool varies;                /* the response depends on Accept-Encoding */
	struct slice match;         /* the value of Use-As-Dictionary; it depends on Available-Dictionary; absent: none */
	struct slice offer;         /* the same among the fields that are only offered; absent: there are none */
	struct slice cache_control; /* absent: none */
	const struct header_set *headers; /* of the owner, see struct header_item; NULL: none */
	/* As in struct lookup. Then the owner's Cache-Control, if it is long, does not apply to an error or a page. */
	bool is_substitute, error;
};

/* Add and release a reference. representation_release() is an iob_release. */
void representation_retain(struct representation *file);
void representation_release(void *file);

/* How a file is loaded. */
enum load {
	LOAD_WAITING, /* may wait for a disk */
	LOAD_AT_ONCE, /* fails with EINPROGRESS instead */
	LOAD_UNSEEN,  /* the same for a regular file of this machine, which may be read before fstat(2) */
	LOAD_OPEN     /* opens the file, but does not read it into memory, however small it is */
};

/* Loads the file of fd, which is taken over. Returns 0 and sets *file, which has no fields yet, or returns an errno.
 * EACCES: it is not regular, not world-readable, or holds a private key, or may (key_file.h). *open counts the file as
 * long as it keeps a descriptor. */
int representation_load(int fd, struct slice path, enum load how, unsigned *open, struct representation **file);

/* Does the same for a file that a thread has found, and takes its content: found->taken becomes true. */
int representation_take(struct remote_found *found, struct slice path, unsigned *open, struct representation **file);

/* Writes the fields, once, after representation_load(). Returns 0 or ENOMEM. */
int representation_write_fields(struct representation *file, const struct field_options *options);

/* Writes those of the origin, except for length, coding and validators. Returns 0 or ENOMEM. */
int representation_derive_fields(struct representation *file, const struct representation *origin);

/* Returns all field lines as a header block of HPACK, which the first call makes. offered: with the offered ones.
 * lines: of the worker. */
const struct ready_block *representation_block(struct representation *file, bool offered, struct shared_lines *lines);

/* Adds representation_memory() to *account, until the last reference is released. */
void representation_account(struct representation *file, size_t *account);

/* Returns a representation of the same file in memory. body is malloc'd, and taken over. account: as above. Returns
 * NULL without memory. */
struct representation *representation_copied(struct representation *file, char *body, size_t *account);

/* Return the representation in another coding, with the same fields except those of the coding, or NULL without memory.
 * The reference to what is encoded is taken over. account: as above. size: of the content when it is unpacked. */
struct representation *representation_encoded(struct representation *identity, struct encoded *encoded,
											  size_t *account);
struct representation *representation_gunzipped(struct representation *gzip, uint64_t size);

/* Returns whether If-None-Match has the entity-tag that representation_encoded() gives to an identity in a coding; and
 * then, for a 304, a representation with these fields, but no content, or NULL without memory. */
bool representation_has_coded(const struct representation *identity, enum coding coding, const struct request *request);
struct representation *representation_unsent(const struct representation *identity, enum coding coding);

/* Does the same if it has that of a difference to any dictionary. The representation has that entity-tag, and the
 * offered fields: those who have such a difference share it with nobody. Otherwise returns NULL. */
struct representation *representation_of_difference(const struct representation *identity,
													const struct request *request);

/* Does the same as representation_encoded() for the difference of an identity to a dictionary with that digest
 * (DIGEST_LENGTH bytes). coding: CODING_DCZ or CODING_DCB. body is malloc'd, and taken over. */
struct representation *representation_difference(struct representation *identity, enum coding coding,
												 const unsigned char *digest, char *body, uint64_t size,
												 size_t *account);

/* Returns a representation of the same file with an entity-tag made from its hash (content_hash.h), or NULL without
 * memory. */
struct representation *representation_tagged(struct representation *file, const unsigned char *content_hash);

/* Keeps the digest (DIGEST_LENGTH bytes, see digest.h) of the content. */
void representation_digested(struct representation *file, const unsigned char *digest);

enum { REPRESENTATION_DIGEST_MAX = 80 };

/* Returns the field line Repr-Digest (RFC 9530, section 3; at most REPRESENTATION_DIGEST_MAX bytes), or an absent slice
 * if it is not known. */
struct slice representation_digest(const struct representation *file);

/* Returns the stored bytes, for gzip.h. */
struct gzip_bytes representation_stored(const struct representation *representation);

/* Returns whether there is a second reference to it, or to its origin. */
bool representation_shared(const struct representation *file);

/* Returns the bytes of memory that it takes, without its own structure. */
size_t representation_memory(const struct representation *file);

/* Sets *start to its first bytes, at most CONTENT_TYPE_START. They are in room, which has as many bytes, or those of
 * the body. Returns 0 or an errno: EINPROGRESS if they are not in memory, unless it may wait for a disk. */
int representation_start(const struct representation *file, bool waits, char *room, struct slice *start);

/* Returns whether it is an open file that has been removed. Of a remote file that is found out later, as is what the
 * next function tells. */
bool representation_gone(const struct representation *file);

/* Returns whether an open file was changed in place, so that its bytes must not be sent with the entity-tag. */
bool representation_changed(const struct representation *file);

/* Returns whether an open file was not written to since it was loaded; it may have been removed or replaced. now: of
 * fstat(2). Has the type iob_unchanged. */
bool representation_unwritten(void *file, const struct stat *now);

#endif
