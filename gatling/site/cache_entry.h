/* cache_entry.h - the inside of the cache, shared by cache_find.c, which finds them, cache_load.c, which reads files,
 * cache_jobs.c, which has them converted, hashed and copied, and cache_table.c, which makes room. */
#ifndef GATLING_SITE_CACHE_ENTRY_H
#define GATLING_SITE_CACHE_ENTRY_H

#include <sys/queue.h>

#include "gatling/site/cache.h"

enum { IN_MEMORY, OPEN_FILES /* those with descriptors */, RINGS };

/* What is done to a representation beside the loop. */
enum job_kind { COMPRESS, UNPACK, HASH, COPY, JOB_KINDS };

struct cache_entry {
	struct resource resource; /* first: a resource is its entry */
	unsigned references;      /* of the cache and of jobs */
	bool cached;              /* the cache has a reference */
	bool asked;               /* it was found again since the hand passed it */
	bool unsettled;           /* it was loaded in FILE_VERSION_SETTLES_MS, and is loaded again after it */
	bool recent;              /* see FILE_VERSION_RECENT_S; or a file could not be opened for a temporary reason */
	bool lately;              /* what else there is in its directory was known from a look before, see NAMES_LATELY */
	bool compressed;          /* its gzip was compressed here */
	bool copied;              /* it has a copy, and is among the copied entries */
	bool restricted, stands_in, error, fetched; /* of struct lookup */
	uint64_t hash, headers;                     /* headers: the id of the set, 0 for none */
	int64_t checked_ms, used_ms, copied_ms;     /* copied_ms: when a copy was last returned, or seen being sent */
	size_t memory;
	unsigned descriptors;
	struct file_version version[CODINGS]; /* of the file and those beside it */
	struct cache_job *job[JOB_KINDS];     /* those that are not finished; NULL: none */
	LIST_ENTRY(cache_entry) chain;
	TAILQ_ENTRY(cache_entry) age, copy_age;
	struct slice path;
	char text[]; /* of the path, NUL-terminated */
};

struct cache {
	struct cache_options options;
	uint64_t seed;
	uint64_t pending[JOB_KINDS];      /* bytes of the files of jobs that are not finished */
	size_t compressed;                /* bytes of memory with compressed bodies, also to be sent */
	size_t copies;                    /* likewise with copies */
	TAILQ_HEAD(, cache_entry) copied; /* those with copies, in the order of copied_ms */
	unsigned open;                    /* files with a descriptor, also to be sent */
	unsigned resources, descriptors;
	size_t bytes;
	int64_t tidied_ms;
	struct ring {
		TAILQ_HEAD(, cache_entry) entries; /* the oldest first */
		struct cache_entry *hand;          /* which it comes to next; NULL: the oldest */
		unsigned length;
	} ring[RINGS];
	struct cache_entry *unkept; /* found last, and not in the table; NULL: what was found last is in it */
	uint64_t buckets;           /* a power of two */
	struct bucket {
		LIST_HEAD(, cache_entry) entries;
		uint32_t passed; /* part of the hash of the last one that was not kept; 0: none */
	} bucket[];
};

/* --- cache_table.c --- */

/* Gives back a reference; the last frees the entry. */
void cache_entry_release(struct cache_entry *entry);

/* Counts what the entry holds now. */
void cache_entry_account(struct cache *cache, struct cache_entry *entry);

/* Has others make room for what the entry holds now. */
void cache_make_room(struct cache *cache, struct cache_entry *entry);

/* Inserts an entry, for which others make room. Takes the reference over. */
void cache_insert(struct cache *cache, struct cache_entry *entry);

/* Removes an entry that is in the table. */
void cache_entry_drop(struct cache *cache, struct cache_entry *entry);

/* Returns whether a new entry is kept. */
bool cache_keeps(struct cache *cache, const struct cache_entry *entry);

/* Forgets what was found last, if it was not kept. */
void cache_forget_unkept(struct cache *cache);

/* Returns the chain in which an entry with that hash is. */
struct bucket *cache_bucket(struct cache *cache, uint64_t hash);

/* Returns the next entry of a ring that has to make room, of those of a kind (NULL: all) and without the one that is
 * spared; NULL: there is none. */
struct cache_entry *cache_victim(struct ring *ring, bool (*of_kind)(const struct cache_entry *),
								 const struct cache_entry *spared);

/* Returns whether one more file may be opened, after closing files that only the cache uses. */
bool cache_may_open(struct cache *cache);

/* Forgets a representation that can be generated again. */
void cache_forget_produced(struct resource *resource, enum coding coding);
void cache_entry_forget_compressed(struct cache_entry *entry);

/* Notes that a copy of an entry is used, the first one, too. */
void cache_note_copy(struct cache *cache, struct cache_entry *entry, int64_t now_ms);

/* Forgets copies of so many bytes that are neither being sent nor were used in the last CACHE_CHECK_MS, the longest
 * unused first. Returns false if there are fewer, and then it forgets none. */
bool cache_forget_copies(struct cache *cache, uint64_t bytes, int64_t now_ms);

/* --- cache_load.c --- */

/* Makes an entry of the files of a resource. Returns 0, or an errno as cache_find(). */
int cache_entry_new(struct cache *cache, const struct lookup *lookup, struct cache_entry **entry);

/* Writes the version of each of its files to version[CODINGS]. Returns 0, or an errno about the file itself. */
int cache_entry_look(const struct cache *cache, const struct cache_entry *entry, struct file_version *version);

/* Returns whether one of its files may be in the middle of a write, see FILE_VERSION_SETTLES_MS. */
bool cache_entry_is_unsettled(const struct cache_entry *entry);

#endif
