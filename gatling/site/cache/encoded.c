/* encoded.c - see encoded.h: a hash table with chains. */
#include "gatling/site/cache/encoded.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct encoded *bucket[BUCKETS]; /* guarded by the mutex, as are references and next of what is in it */

static struct encoded **bucket_of(const struct file_version *version) {
	return &bucket[file_version_hash(0, version) % BUCKETS];
}

/* Returns a new reference, or NULL. The caller holds the mutex. */
static struct encoded *find(const struct file_version *version, enum coding coding) {
	struct encoded *e = file_version_recent(version) ? NULL : *bucket_of(version);
	while (e && !(e->coding == coding && file_version_same(&e->version, version))) e = e->next;
	if (e) e->references++;
	return e;
}

struct encoded *encoded_find(const struct file_version *version, enum coding coding) {
	pthread_mutex_lock(&mutex);
	struct encoded *e = find(version, coding);
	pthread_mutex_unlock(&mutex);
	return e;
}

struct encoded *encoded_keep(const struct file_version *version, enum coding coding, char *body, uint64_t size) {
	struct encoded *made = malloc(sizeof *made);
	pthread_mutex_lock(&mutex);
	struct encoded *e = find(version, coding);
	if (!e && made) {
		struct encoded **first = bucket_of(version);
		*made = (struct encoded){.content = {.at = body, .length = (size_t)size},
								 .version = *version,
								 .coding = coding,
								 .references = 1,
								 .next = *first};
		*first = e = made;
	}
	pthread_mutex_unlock(&mutex);
	if (e && e == made) return e;
	free(made);
	free(body);
	return e;
}

void encoded_release(struct encoded *e) {
	if (!e) return;
	pthread_mutex_lock(&mutex);
	const bool last = --e->references == 0;
	if (last) {
		struct encoded **link = bucket_of(&e->version);
		while (*link != e) link = &(*link)->next;
		*link = e->next;
	}
	pthread_mutex_unlock(&mutex);
	if (!last) return;
	free((char *)e->content.at);
	free(e);
}
