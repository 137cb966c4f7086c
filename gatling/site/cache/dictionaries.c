/* dictionaries.c - see dictionaries.h. */
#include "gatling/site/cache/dictionaries.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "gatling/codec/zstd.h"

enum { PLACES = 1024 }; /* lists of dictionaries: a digest that is not there is compared with four others */

struct dictionary {
	unsigned char digest[DIGEST_LENGTH];
	char *packed;
	size_t packed_length, length;
	unsigned readers; /* threads that unpack it; it is not freed meanwhile */
	TAILQ_ENTRY(dictionary) age;
	LIST_ENTRY(dictionary) place;
	struct slice pattern;
	char text[]; /* the pattern */
};

/* Guarded by the mutex. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(dictionaries, dictionary) all = TAILQ_HEAD_INITIALIZER(all); /* the longest unused first */
static LIST_HEAD(, dictionary) place[PLACES];                                  /* by digest */
static unsigned count;
static uint64_t bytes;

static unsigned place_of(const unsigned char *digest) { return (digest[0] | (unsigned)digest[1] << CHAR_BIT) % PLACES; }

static uint64_t memory_of(const struct dictionary *d) { return sizeof *d + d->pattern.length + d->packed_length; }

static bool is_for(struct slice pattern, struct slice path) {
	const size_t start = slice_until(pattern, '*');
	return path.length + 1 >= pattern.length && slice_starts(path, slice_first(pattern, start)) &&
		   slice_ends(path, slice_rest(pattern, start + 1));
}

/* Returns one with that digest for which suits(pattern, wanted) returns true; it becomes the one used last. Or returns
 * NULL. The caller holds the mutex. */
static struct dictionary *find(const unsigned char *digest, bool (*suits)(struct slice, struct slice),
							   struct slice wanted) {
	struct dictionary *d;
	LIST_FOREACH(d, &place[place_of(digest)], place)
	if (memcmp(d->digest, digest, DIGEST_LENGTH) == 0 && suits(d->pattern, wanted)) break;
	if (!d) return NULL;
	TAILQ_REMOVE(&all, d, age);
	TAILQ_INSERT_TAIL(&all, d, age);
	return d;
}

static void drop(struct dictionary *d) {
	TAILQ_REMOVE(&all, d, age);
	LIST_REMOVE(d, place);
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

static bool is_found(const unsigned char *digest, bool (*suits)(struct slice, struct slice), struct slice wanted) {
	pthread_mutex_lock(&mutex);
	const bool found = find(digest, suits, wanted);
	pthread_mutex_unlock(&mutex);
	return found;
}

bool dictionary_is_kept(const unsigned char *digest, struct slice pattern) {
	return is_found(digest, slice_equal, pattern);
}

bool dictionary_is_found(const unsigned char *digest, struct slice path) { return is_found(digest, is_for, path); }

void dictionary_keep(const unsigned char *digest, struct slice pattern, struct slice content, uint64_t most) {
	if (content.length > DICTIONARY_MAX || dictionary_is_kept(digest, pattern)) return;
	struct dictionary *d = malloc(sizeof *d + pattern.length);
	if (!d) return;
	*d = (struct dictionary){.length = content.length, .pattern = {.at = d->text, .length = pattern.length}};
	memcpy(d->digest, digest, DIGEST_LENGTH);
	memcpy(d->text, pattern.at, pattern.length);
	if (!(d->packed = zstd_pack(content, &d->packed_length))) {
		free(d);
		return;
	}
	pthread_mutex_lock(&mutex);
	if (find(digest, slice_equal, pattern)) { /* another thread was faster */
		free(d->packed);
		free(d);
	} else {
		TAILQ_INSERT_TAIL(&all, d, age);
		LIST_INSERT_HEAD(&place[place_of(digest)], d, place);
		count++;
		bytes += memory_of(d);
		make_room(most);
	}
	pthread_mutex_unlock(&mutex);
}

char *dictionary_unpack(const unsigned char *digest, struct slice path, size_t *length) {
	pthread_mutex_lock(&mutex);
	struct dictionary *d = find(digest, is_for, path);
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
