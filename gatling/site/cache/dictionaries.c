/* dictionaries.c - see dictionaries.h. */
#include "gatling/site/cache/dictionaries.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "gatling/codec/zstd.h"

struct dictionary {
	unsigned char digest[DIGEST_LENGTH];
	char *packed;
	size_t packed_length, length;
	unsigned readers; /* threads that unpack it; it is not freed meanwhile */
	TAILQ_ENTRY(dictionary) age;
	struct slice family;
	char text[]; /* the family */
};

/* Guarded by the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(dictionaries, dictionary) all = TAILQ_HEAD_INITIALIZER(all); /* the longest unused first */
static unsigned count;
static uint64_t bytes;

static uint64_t memory_of(const struct dictionary *d) { return sizeof *d + d->family.length + d->packed_length; }

/* Returns one, which becomes the one used last, or NULL. The caller holds the mutex. */
static struct dictionary *find(const unsigned char *digest, struct slice family) {
	struct dictionary *d;
	TAILQ_FOREACH(d, &all, age)
	if (memcmp(d->digest, digest, DIGEST_LENGTH) == 0 && slice_equal(d->family, family)) break;
	if (!d) return NULL;
	TAILQ_REMOVE(&all, d, age);
	TAILQ_INSERT_TAIL(&all, d, age);
	return d;
}

static void drop(struct dictionary *d) {
	TAILQ_REMOVE(&all, d, age);
	count--;
	bytes -= memory_of(d);
	free(d->packed);
	free(d);
}

/* Drops those that are not being read, the longest unused first, until the others are within the limit. */
static void make_room(uint64_t most) {
	for (struct dictionary *d = TAILQ_FIRST(&all), *next; d && (bytes > most || count > DICTIONARIES_MAX); d = next) {
		next = TAILQ_NEXT(d, age);
		if (!d->readers) drop(d);
	}
}

bool dictionary_is_kept(const unsigned char *digest, struct slice family) {
	pthread_mutex_lock(&mutex);
	const bool found = find(digest, family);
	pthread_mutex_unlock(&mutex);
	return found;
}

void dictionary_keep(const unsigned char *digest, struct slice family, struct slice content, uint64_t most) {
	if (content.length > DICTIONARY_MAX || dictionary_is_kept(digest, family)) return;
	struct dictionary *d = malloc(sizeof *d + family.length);
	if (!d) return;
	*d = (struct dictionary){.length = content.length, .family = {.at = d->text, .length = family.length}};
	memcpy(d->digest, digest, DIGEST_LENGTH);
	memcpy(d->text, family.at, family.length);
	if (!(d->packed = zstd_pack(content, &d->packed_length))) {
		free(d);
		return;
	}
	pthread_mutex_lock(&mutex);
	if (find(digest, family)) { /* another thread was faster */
		free(d->packed);
		free(d);
	} else {
		TAILQ_INSERT_TAIL(&all, d, age);
		count++;
		bytes += memory_of(d);
		make_room(most);
	}
	pthread_mutex_unlock(&mutex);
}

char *dictionary_unpack(const unsigned char *digest, struct slice family, size_t *length) {
	pthread_mutex_lock(&mutex);
	struct dictionary *d = find(digest, family);
	if (d) d->readers++;
	pthread_mutex_unlock(&mutex);
	if (!d) return NULL;
	char *content = zstd_unpack((struct slice){.at = d->packed, .length = d->packed_length}, d->length);
	*length = d->length;
	pthread_mutex_lock(&mutex);
	d->readers--;
	pthread_mutex_unlock(&mutex);
	return content;
}
