/* cache_entry.h - the inside of the cache, shared by cache_find.c (finds entries), cache_load.c (loads files),
 * cache_jobs.c (converts, hashes and copies them in threads) and cache_table.c (the table, and making room in it). */
#ifndef GATLING_SITE_CACHE_CACHE_ENTRY_H
#define GATLING_SITE_CACHE_CACHE_ENTRY_H

#include <sys/queue.h>

#include "gatling/base/digest.h"
#include "gatling/site/cache/cache.h"

enum { IN_MEMORY, OPEN_FILES /* entries that keep descriptors */, RINGS };

/* What a thread does with a representation. */
enum job_kind { COMPRESS, IMPROVE, UNPACK, HASH, COPY, DIGEST, DELTA, REGISTER, JOB_KINDS };

/* The difference of a file to an older version, see cache_delta(). */
struct delta {
	unsigned char digest[DIGEST_LENGTH]; /* of the older version */
	enum coding coding;
	struct representation *difference; /* NULL: it could not be made, or is none of use */
};

enum {
	DELTAS_MAX = 16,       /* of a file; the oldest makes room, */
	DELTA_AGAIN_MS = 10000 /* but not sooner than this after another has: no client can have them made in turn */
};

struct cache_entry {
	struct resource resource;                                        /* first: a pointer to it is one to this */
	unsigned references;                                             /* of the cache and of jobs */
	bool cached;                                                     /* it is in the table, which holds a reference */
	bool asked;                                                      /* it was found again since the hand passed it */
	bool copied;                                                     /* it has a copy, and is in the list `copied` */
	bool restricted, is_substitute, error, is_alternate, prefetched; /* as in struct lookup */
	unsigned compressed;        /* codings that were compressed here: a set of 1 << coding */
	bool registered;            /* cache_register() has begun */
	struct delta *deltas;       /* DELTAS_MAX, all zero at first; NULL: none */
	int64_t delta_ms;           /* when the last one was begun */
	unsigned next_delta;        /* the place for the next one */
	struct slice wildcard;      /* the part of path for which the pattern of dictionaries has an asterisk, or absent */
	size_t site;                /* as in struct lookup */
	uint64_t hash, headers;     /* headers: the id of the set, 0 for none */
	int64_t used_ms, copied_ms; /* copied_ms: when a copy was last returned, or seen being sent */
	size_t memory;
	unsigned descriptors;
	struct file_version version[CODINGS]; /* of its files, by coding */
	struct cache_job *job[JOB_KINDS];     /* those that are not finished; NULL: none */
	LIST_ENTRY(cache_entry) chain;
	TAILQ_ENTRY(cache_entry) age, copy_age;
	struct slice path;
	char text[]; /* the path, NUL-terminated */
};

struct cache {
	struct cache_options options;
	uint64_t seed;
	uint64_t pending[JOB_KINDS];      /* bytes of the files in unfinished jobs */
	size_t loaded;                    /* bytes of memory for small files, including those being sent */
	size_t compressed;                /* bytes of memory for what was compressed here, including what is being sent */
	size_t copies;                    /* bytes of memory for copies, including those being sent */
	TAILQ_HEAD(, cache_entry) copied; /* entries with copies, in the order of copied_ms */
	unsigned open;                    /* open files, including those being sent */
	unsigned resources, descriptors;
	size_t bytes;
	int64_t tidied_ms;
	int64_t improve_ms; /* when cache_improve() may next begin a job */
	struct ring {
		TAILQ_HEAD(, cache_entry) entries; /* the oldest first */
		struct cache_entry *hand;          /* the entry that it tests next; NULL: the oldest */
		unsigned length;
	} ring[RINGS];
	struct cache_entry *unkept; /* the entry found last, if it is not in the table; else NULL */
	uint64_t buckets;           /* a power of two */
	struct bucket {
		LIST_HEAD(, cache_entry) entries;
		uint32_t passed; /* part of the hash of the last entry that was not kept; 0: none */
	} bucket[];
};

/* --- cache_table.c --- */

/* Releases a reference; the last one frees the entry. */
void cache_entry_release(struct cache_entry *entry);

/* Updates the counts of memory and descriptors for what an entry holds. */
void cache_entry_account(struct cache *cache, struct cache_entry *entry);

/* Updates the counts for what an entry holds, and drops others until the cache is within its limits. */
void cache_make_room(struct cache *cache, struct cache_entry *entry);

/* Inserts an entry into the table, and drops others until the cache is within its limits. Takes the reference over. */
void cache_insert(struct cache *cache, struct cache_entry *entry);

/* Removes an entry from the table. */
void cache_entry_drop(struct cache *cache, struct cache_entry *entry);

/* Returns whether a new entry is to enter the table. */
bool cache_keeps(struct cache *cache, const struct cache_entry *entry);

/* Releases the entry that was found last, if it is not in the table. */
void cache_forget_unkept(struct cache *cache);

/* Returns the bucket for a hash. */
struct bucket *cache_bucket(struct cache *cache, uint64_t hash);

/* Chooses the next entry of a ring to be dropped: one for which of_kind() returns true (NULL: any), except `spared`.
 * Returns NULL if there is none. */
struct cache_entry *cache_victim(struct ring *ring, bool (*of_kind)(const struct cache_entry *),
								 const struct cache_entry *spared);

/* Returns whether another file may be opened. If necessary, drops entries whose files are not being sent. */
bool cache_may_open(struct cache *cache);

/* Drops a representation that can be generated again. */
void cache_forget_produced(struct resource *resource, enum coding coding);
void cache_entry_forget_compressed(struct cache_entry *entry); /* also the differences to older versions */

/* Notes that a copy of an entry was made, or is used. */
void cache_note_copy(struct cache *cache, struct cache_entry *entry, int64_t now_ms);

/* Drops copies of at least that many bytes that are not being sent and were not used in the last CACHE_CHECK_MS, the
 * longest unused first. Returns false, and drops none, if there are not enough. */
bool cache_forget_copies(struct cache *cache, uint64_t bytes, int64_t now_ms);

/* --- cache_versions.c --- */

/* Returns the wildcard of a file of a media type: the hash in its name, or what may be one, or the end, so that it is
 * for its later versions. A page is for those whose names begin as its own, too, and an index.html for all below its
 * directory. */
struct slice cache_versions_wildcard(struct slice path, const char *type);

/* Returns whether the path of a file, with an asterisk for a part of it, can be a pattern (dictionaries.h), and a URL
 * pattern. */
bool cache_versions_named(struct slice path, struct slice wildcard);

/* Writes the value of Use-As-Dictionary to out (CACHE_MATCH_MAX bytes), and returns it. path: in the site. page: it is
 * for navigations. */
enum { CACHE_MATCH_MAX = 256 };
struct slice cache_versions_match(struct slice path, struct slice wildcard, bool page, char *out);

/* --- cache_load.c --- */

/* Creates an entry from the files of a resource. Returns 0, or an errno as cache_find() does. */
int cache_entry_new(struct cache *cache, const struct lookup *lookup, int64_t now_ms, struct cache_entry **entry);

/* Writes the versions of an entry's files to version[CODINGS], zeros where there is none. Returns 0 or an errno; with
 * ENOENT there may still be files in other codings. */
int cache_entry_look(const struct cache *cache, const struct cache_entry *entry, struct file_version *version);

/* Writes the sizes of an entry's alternates to size[ALTERNATES], as in struct resource. original: the version of its
 * file. Returns 0, or EINPROGRESS. */
int cache_entry_alternates(const struct cache *cache, const struct cache_entry *entry,
						   const struct file_version *original, uint64_t *size);

#endif
