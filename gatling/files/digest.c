/* digest.c - see digest.h. The hashes are in a direct-mapped table: a file takes over the entry that its inode hashes
 * to. Instead of its version, the entry has a hash of that: with 64 bits and a secret seed, no collision is to be
 * expected. */
#include "gatling/files/digest.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "io/at_once.h"

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

static void finish(struct hash *h, unsigned char *digest) {
	h->one ^= h->length;
	h->two ^= h->length;
	h->one += h->two;
	h->two += h->one;
	h->one = avalanche(h->one);
	h->two = avalanche(h->two);
	h->one += h->two;
	h->two += h->one;
	for (int i = 0; i < 8; i++) {
		digest[i] = (unsigned char)(h->one >> (56 - 8 * i));
		digest[8 + i] = (unsigned char)(h->two >> (56 - 8 * i));
	}
}

void digest_memory(const char *at, size_t length, unsigned char *digest) {
	struct hash h = {0};
	take(&h, at, length);
	finish(&h, digest);
}

/* --- the table --- */

enum { DIGEST_ROW = 128 };

struct digest_entry {
	uint64_t version; /* hash of the file's version; 0: the entry is empty */
	unsigned char digest[DIGEST_LENGTH];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct digest_entry *table; /* guarded by the mutex; NULL until the first use */
static uint64_t seed;              /* guarded by the mutex, too */

/* Held while a large file is hashed: other threads wait, and find its hash if they want the same file. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* Returns the entry for a file. Files of one directory often have consecutive inodes, whose entries are on one or two
 * pages of memory. */
static struct digest_entry *entry_for(const struct file_version *version) {
	const uint64_t row = file_version_hash_inode(version->device, version->inode / DIGEST_ROW);
	return &table[row % (DIGESTS_KEPT / DIGEST_ROW) * DIGEST_ROW + version->inode % DIGEST_ROW];
}

static uint64_t key_of(const struct file_version *version) { return file_version_hash(seed, version) | 1; }

bool digest_find(const struct file_version *version, unsigned char *digest) {
	pthread_mutex_lock(&mutex);
	const struct digest_entry *e = table ? entry_for(version) : NULL;
	bool found = e && version->mode && e->version == key_of(version);
	if (found) memcpy(digest, e->digest, DIGEST_LENGTH);
	pthread_mutex_unlock(&mutex);
	return found;
}

void digest_keep(const struct file_version *version, const unsigned char *digest) {
	pthread_mutex_lock(&mutex);
	if (!table && getentropy(&seed, sizeof seed) == 0) table = calloc(DIGESTS_KEPT, sizeof *table);
	if (table) {
		struct digest_entry *e = entry_for(version);
		e->version = key_of(version);
		memcpy(e->digest, digest, DIGEST_LENGTH);
	}
	pthread_mutex_unlock(&mutex);
}

/* --- files --- */

static int hash_file(int file, uint64_t size, struct hash *hash, char *piece, const atomic_bool *stop) {
	for (uint64_t at = 0; at < size; at += DIGEST_PIECE) {
		size_t length = size - at < DIGEST_PIECE ? (size_t)(size - at) : DIGEST_PIECE;
		if (atomic_load(stop)) return ECANCELED;
		if (at + length < size) io_start_reading(file, (off_t)(at + length), DIGEST_PIECE);
		int error = file_read_at(file, piece, length, (off_t)at);
		if (error) return error;
		take(hash, piece, length);
	}
	return 0;
}

/* Locks `reading`. Returns false if *stop becomes true. */
static bool wait_turn(const atomic_bool *stop) {
	const struct timespec pause = {.tv_nsec = 5000000};
	while (pthread_mutex_trylock(&reading) != 0) {
		if (atomic_load(stop)) return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Returns the version of a file. If it has just been written to, waits a moment, so that a quick writer can complete
 * it; nothing else shows when it is complete. */
static struct file_version settled_version(int file) {
	struct stat st;
	struct file_version id = {0};
	for (bool waited = false;; waited = true) {
		id = fstat(file, &st) == 0 ? file_version_of(&st) : (struct file_version){0};
		int left_ms = file_version_unsettled_ms(&id);
		if (!left_ms || waited) return id;
		const struct timespec pause = {.tv_nsec = left_ms * 1000000L};
		nanosleep(&pause, NULL);
	}
}

int digest_compute(int file, uint64_t size, const atomic_bool *stop, unsigned char *digest) {
	struct stat st;
	bool alone = size > DIGEST_SOON;
	if (alone && !wait_turn(stop)) return ECANCELED;
	struct file_version id = settled_version(file);
	struct hash hash = {0};
	char *piece = NULL;
	int error = 0;
	if (!file_version_recent(&id, time(NULL)) && digest_find(&id, digest)) goto done;
	piece = malloc(DIGEST_PIECE);
	error = piece ? hash_file(file, size, &hash, piece, stop) : ENOMEM;
	if (!error) finish(&hash, digest);
	if (!error && !file_version_recent(&id, time(NULL))) {
		struct file_version now = fstat(file, &st) == 0 ? file_version_of(&st) : (struct file_version){0};
		if (file_version_same(&id, &now)) digest_keep(&id, digest);
	}
done:
	if (alone) pthread_mutex_unlock(&reading);
	free(piece);
	return error;
}
