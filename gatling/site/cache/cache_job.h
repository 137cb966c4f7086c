/* cache_job.h - the inside of jobs of the cache, shared by cache_jobs.c and cache_versions.c. */
#ifndef GATLING_SITE_CACHE_CACHE_JOB_H
#define GATLING_SITE_CACHE_CACHE_JOB_H

#include "gatling/base/digest.h"
#include "gatling/files/content_hash.h"
#include "gatling/site/cache/cache_entry.h"

struct cache_job {
	struct job job;
	enum job_kind kind;
	struct cache *cache;
	struct cache_entry *entry;
	struct representation *from;
	enum coding coding;                 /* what it makes */
	struct encoded *encoded;            /* of COMPRESS and IMPROVE; NULL: nothing yet */
	char *body;                         /* of COPY and DELTA */
	uint64_t size;                      /* of UNPACK and DELTA */
	struct content_hash_state *hashing; /* of a large file */
	unsigned char content_hash[CONTENT_HASH_LENGTH];
	unsigned char digest[DIGEST_LENGTH]; /* of DIGEST; of DELTA: that of the dictionary */
	bool alone; /* of REGISTER: older versions may be for others, since names decide who is admitted */
	int error;
};

/* Starts a copy of a job, which holds references to its entry and representation. Returns NULL without memory or a
 * thread. */
struct job *cache_job_start(struct jobs *jobs, const struct cache_job *job);
void cache_job_end(struct cache_job *job);

/* Called in the thread when the file was read: finds out whether it has been written to meanwhile. */
void cache_job_check_file(struct cache_job *job);

/* Drops compressed bodies until the others are within the limit, `newest` last. */
void cache_limit_compressed(struct cache *cache, struct cache_entry *newest);

#endif
