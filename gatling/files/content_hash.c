/* content_hash.c - see content_hash.h. The hashes are in a direct-mapped table: a file takes over the entry that its
 * inode hashes to. Instead of its version, the entry has a hash of that: with 64 bits and a secret seed, no collision
 * is to be expected. */
#include "gatling/files/content_hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "io/at_once.h"
#include "io/task.h"

/* --- MurmurHash3_x64_128 --- */

enum { BLOCK = 16 };

/* The state of a hash with the seed 0: all zero at first. */
struct hash {
	uint64_t one, two, length;
};

/* Returns the word of up to eight octets, the first of which is the lowest. */
static uint64_t word(const char *at, size_t octets) {
	uint64_t value = 0;
	memcpy(&value, at, octets);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value = __builtin_bswap64(value);
#endif
	return value;
}

static uint64_t rotate(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

static uint64_t mix(uint64_t word, uint64_t first, int bits, uint64_t second) {
	return rotate(word * first, bits) * second;
}

static uint64_t avalanche(uint64_t word) {
	word = (word ^ word >> 33) * UINT64_C(0xff51afd7ed558ccd);
	word = (word ^ word >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return word ^ word >> 33;
}

/* Adds bytes: whole blocks, or the last bytes. */
static void take(struct hash *h, const char *at, size_t length) {
	const uint64_t one = UINT64_C(0x87c37b91114253d5), two = UINT64_C(0x4cf5ad432745937f);
	h->length += length;
	for (; length >= BLOCK; at += BLOCK, length -= BLOCK) {
		h->one = rotate(h->one ^ mix(word(at, 8), one, 31, two), 27) + h->two;
		h->one = h->one * 5 + 0x52dce729;
		h->two = rotate(h->two ^ mix(word(at + 8, 8), two, 33, one), 31) + h->one;
		h->two = h->two * 5 + 0x38495ab5;
	}
	if (length > 8) h->two ^= mix(word(at + 8, length - 8), two, 33, one);
	h->one ^= mix(word(at, length < 8 ? length : 8), one, 31, two);
}

static void finish(struct hash *h, unsigned char *content_hash) {
	h->one ^= h->length;
	h->two ^= h->length;
	h->one += h->two;
	h->two += h->one;
	h->one = avalanche(h->one);
	h->two = avalanche(h->two);
	h->one += h->two;
	h->two += h->one;
	for (int i = 0; i < 8; i++) {
		content_hash[i] = (unsigned char)(h->one >> (56 - 8 * i));
		content_hash[8 + i] = (unsigned char)(h->two >> (56 - 8 * i));
	}
}

void content_hash_memory(const char *at, size_t length, unsigned char *content_hash) {
	struct hash h = {0};
	take(&h, at, length);
	finish(&h, content_hash);
}

/* --- the table --- */

enum { CONTENT_HASH_ROW = 128 };

struct content_hash_entry {
	uint64_t version; /* hash of the file's version; 0: the entry is empty */
	unsigned char content_hash[CONTENT_HASH_LENGTH];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct content_hash_entry *table; /* guarded by the mutex; NULL until the first use */
static uint64_t seed;                    /* guarded by the mutex, too */

/* Returns the entry for a file. Files of one directory often have consecutive inodes, whose entries are on one or two
 * pages of memory. */
static struct content_hash_entry *entry_for(const struct file_version *version) {
	const uint64_t row = file_version_hash_inode(version->device, version->inode / CONTENT_HASH_ROW);
	return &table[row % (CONTENT_HASHES_KEPT / CONTENT_HASH_ROW) * CONTENT_HASH_ROW +
				  version->inode % CONTENT_HASH_ROW];
}

static uint64_t key_of(const struct file_version *version) { return file_version_hash(seed, version) | 1; }

bool content_hash_find(const struct file_version *version, unsigned char *content_hash) {
	pthread_mutex_lock(&mutex);
	const struct content_hash_entry *e = table ? entry_for(version) : NULL;
	bool found = e && version->mode && e->version == key_of(version);
	if (found) memcpy(content_hash, e->content_hash, CONTENT_HASH_LENGTH);
	pthread_mutex_unlock(&mutex);
	return found;
}

void content_hash_keep(const struct file_version *version, const unsigned char *content_hash) {
	pthread_mutex_lock(&mutex);
	if (!table && getentropy(&seed, sizeof seed) == 0) table = calloc(CONTENT_HASHES_KEPT, sizeof *table);
	if (table) {
		struct content_hash_entry *e = entry_for(version);
		e->version = key_of(version);
		memcpy(e->content_hash, content_hash, CONTENT_HASH_LENGTH);
	}
	pthread_mutex_unlock(&mutex);
}

/* --- files --- */

/* Returns the version of an open file, all zero if that is unknown. */
static struct file_version version_of(int file) {
	struct stat st;
	return fstat(file, &st) == 0 ? file_version_of(&st) : (struct file_version){0};
}

/* Returns the version of a file. If it has just been written to, waits a moment, so that a quick writer can complete
 * it; nothing else shows when it is complete. */
static struct file_version settled_version(int file) {
	for (bool waited = false;; waited = true) {
		const struct file_version id = version_of(file);
		int left_ms = file_version_unsettled_ms(&id);
		if (!left_ms || waited) return id;
		const struct timespec pause = {.tv_nsec = left_ms * 1000000L};
		nanosleep(&pause, NULL);
	}
}

/* Returns whether the hash of a version is known. */
static bool is_known(const struct file_version *id, unsigned char *content_hash) {
	return !file_version_recent(id) && content_hash_find(id, content_hash);
}

/* Remembers a hash, if the file still has the version that it had before it was read. */
static void keep(int file, const struct file_version *id, const unsigned char *content_hash) {
	const struct file_version now = version_of(file);
	if (!file_version_recent(id) && file_version_same(id, &now)) content_hash_keep(id, content_hash);
}

/* Hashes a file from *at to end. patient: gives way to what clients wait for. *at is how far it came. Returns 0 or an
 * errno. */
static int hash_part(int file, uint64_t *at, uint64_t end, struct hash *hash, bool patient, const atomic_bool *stop) {
	char *piece = malloc(CONTENT_HASH_PIECE);
	int error = piece ? 0 : ENOMEM;
	for (size_t length; *at < end && !error; *at += error ? 0 : length) {
		length = end - *at < CONTENT_HASH_PIECE ? (size_t)(end - *at) : CONTENT_HASH_PIECE;
		if (patient) patient = io_reads_stand_back(stop);
		if (atomic_load(stop)) error = ECANCELED;
		if (!error && *at + length < end) io_start_reading(file, (off_t)(*at + length), CONTENT_HASH_PIECE);
		if (!error) error = file_read_at(file, piece, length, (off_t)*at);
		if (!error) take(hash, piece, length);
	}
	free(piece);
	return error;
}

int content_hash_compute(int file, uint64_t size, const atomic_bool *stop, unsigned char *content_hash) {
	const struct file_version id = settled_version(file);
	struct hash hash = {0};
	uint64_t at = 0;
	if (is_known(&id, content_hash)) return 0;
	int error = hash_part(file, &at, size, &hash, false, stop);
	if (error) return error;
	finish(&hash, content_hash);
	keep(file, &id, content_hash);
	return 0;
}

/* --- large files, in slices --- */

struct content_hash_state {
	LIST_ENTRY(content_hash_state) link;
	unsigned references;
	bool shared;
	struct file_version version;
	uint64_t size, at;
	struct hash hash;
};

/* Guarded by the mutex, as are the counts of references. Whoever has the turn may use a state otherwise. */
static LIST_HEAD(, content_hash_state) states = LIST_HEAD_INITIALIZER(states);

/* Threads take turns in the order in which they came. */
static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;
static uint64_t turns_taken, turns_ended; /* guarded by turns */

static void take_turn(void) {
	pthread_mutex_lock(&turns);
	for (const uint64_t mine = turns_taken++; turns_ended != mine;) pthread_cond_wait(&turn_ended, &turns);
	pthread_mutex_unlock(&turns);
}

static void end_turn(void) {
	pthread_mutex_lock(&turns);
	turns_ended++;
	pthread_cond_broadcast(&turn_ended);
	pthread_mutex_unlock(&turns);
}

/* Returns a reference to the state for a version, or NULL without memory. One of a file that may change without a
 * change of its times is not shared. */
static struct content_hash_state *join(const struct file_version *id, uint64_t size) {
	const bool shared = id->mode && !file_version_recent(id);
	struct content_hash_state *s;
	pthread_mutex_lock(&mutex);
	LIST_FOREACH(s, &states, link)
	if (shared && s->shared && s->size == size && file_version_same(&s->version, id)) break;
	if (!s && (s = calloc(1, sizeof *s))) {
		s->shared = shared;
		s->version = *id;
		s->size = size;
		LIST_INSERT_HEAD(&states, s, link);
	}
	if (s) s->references++;
	pthread_mutex_unlock(&mutex);
	return s;
}

void content_hash_leave(struct content_hash_state *s) {
	if (!s) return;
	pthread_mutex_lock(&mutex);
	const bool last = !--s->references;
	if (last) LIST_REMOVE(s, link);
	pthread_mutex_unlock(&mutex);
	if (last) free(s);
}

/* Hashes the next slice. Returns as content_hash_slice(). */
static int advance(struct content_hash_state *s, int file, const atomic_bool *stop, unsigned char *content_hash) {
	const struct file_version now = version_of(file);
	if (!file_version_same(&s->version, &now)) return ESTALE;
	if (is_known(&s->version, content_hash)) return 0;
	const uint64_t end = s->size - s->at > CONTENT_HASH_SLICE ? s->at + CONTENT_HASH_SLICE : s->size;
	int error = hash_part(file, &s->at, end, &s->hash, true, stop);
	if (error || s->at < s->size) return error ? error : EINPROGRESS;
	struct hash hash = s->hash; /* others finish theirs */
	finish(&hash, content_hash);
	keep(file, &s->version, content_hash);
	return 0;
}

int content_hash_slice(struct content_hash_state **state, int file, uint64_t size, const atomic_bool *stop,
					   unsigned char *content_hash) {
	if (!*state) {
		const struct file_version id = settled_version(file);
		if (is_known(&id, content_hash)) return 0;
		if (!(*state = join(&id, size))) return ENOMEM;
	}
	take_turn();
	const int error = advance(*state, file, stop, content_hash);
	end_turn();
	return error;
}
