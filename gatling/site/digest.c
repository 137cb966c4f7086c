/* digest.c - see digest.h. A direct-mapped table: a file takes over the entry that it hashes to. */
#include "gatling/site/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct digest_entry {
	struct file_version version;
	unsigned char digest[DIGEST_LENGTH];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct digest_entry *table; /* guarded by the mutex; allocated at the first use */

/* Held while a large file is hashed: other threads wait, and find its hash if they want the same file. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static struct digest_entry *entry_for(const struct file_version *version) {
	return &table[file_version_hash_inode(version->device, version->inode) % DIGESTS_KEPT];
}

bool digest_find(const struct file_version *version, unsigned char *digest) {
	pthread_mutex_lock(&mutex);
	const struct digest_entry *e = table ? entry_for(version) : NULL;
	bool found = e && e->version.mode && file_version_same(&e->version, version);
	if (found) memcpy(digest, e->digest, DIGEST_LENGTH);
	pthread_mutex_unlock(&mutex);
	return found;
}

void digest_keep(const struct file_version *version, const unsigned char *digest) {
	pthread_mutex_lock(&mutex);
	if (!table) table = calloc(DIGESTS_KEPT, sizeof *table);
	if (table) {
		struct digest_entry *e = entry_for(version);
		e->version = *version;
		memcpy(e->digest, digest, DIGEST_LENGTH);
	}
	pthread_mutex_unlock(&mutex);
}

static int hash_file(int file, uint64_t size, EVP_MD_CTX *hash, char *piece, const atomic_bool *stop) {
	for (uint64_t at = 0; at < size;) {
		size_t want = size - at < DIGEST_PIECE ? (size_t)(size - at) : DIGEST_PIECE;
		if (atomic_load(stop)) return ECANCELED;
		ssize_t n = pread(file, piece, want, (off_t)at);
		if (n == -1 && errno == EINTR) continue;
		if (n <= 0) return n == 0 ? EIO : errno;
		if (!EVP_DigestUpdate(hash, piece, (size_t)n)) return ENOMEM;
		at += (uint64_t)n;
	}
	return 0;
}

/* Returns false if *stop becomes true. */
static bool wait_turn(const atomic_bool *stop) {
	const struct timespec pause = {.tv_nsec = 5000000};
	while (pthread_mutex_trylock(&reading) != 0) {
		if (atomic_load(stop)) return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Waits until a file that has just been written to is complete, if its writer is as quick as that; nothing else says
 * so. Returns its version then. */
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
	unsigned length = DIGEST_LENGTH;
	bool alone = size > DIGEST_SOON;
	if (alone && !wait_turn(stop)) return ECANCELED;
	struct file_version id = settled_version(file);
	EVP_MD_CTX *hash = NULL;
	char *piece = NULL;
	int error = 0;
	if (!file_version_recent(&id, time(NULL)) && digest_find(&id, digest)) goto done;
	hash = EVP_MD_CTX_new();
	piece = malloc(DIGEST_PIECE);
	error = hash && piece && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) ? 0 : ENOMEM;
	if (!error) error = hash_file(file, size, hash, piece, stop);
	if (!error && !EVP_DigestFinal_ex(hash, digest, &length)) error = ENOMEM;
	if (!error && !file_version_recent(&id, time(NULL))) {
		struct file_version now = fstat(file, &st) == 0 ? file_version_of(&st) : (struct file_version){0};
		if (file_version_same(&id, &now)) digest_keep(&id, digest);
	}
done:
	if (alone) pthread_mutex_unlock(&reading);
	EVP_MD_CTX_free(hash);
	free(piece);
	return error;
}
