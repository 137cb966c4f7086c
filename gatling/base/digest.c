/* digest.c - see digest.h. Versions are kept as hashes with a secret seed, as in content_hash.c. */
#include "gatling/base/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gatling/base/file_read.h"
#include "io/at_once.h"
#include "io/task.h"

int digest_of_memory(struct slice content, unsigned char *digest) {
	return EVP_Digest(content.at, content.length, digest, NULL, EVP_sha256(), NULL) == 1 ? 0 : ENOMEM;
}

/* Returns 0 or an errno. */
static int add_file(EVP_MD_CTX *context, char *piece, int file, uint64_t size, bool patient, const atomic_bool *stop) {
	for (uint64_t at = 0; at < size;) {
		const size_t length = size - at < DIGEST_PIECE ? (size_t)(size - at) : DIGEST_PIECE;
		if (patient) patient = io_reads_stand_back(stop);
		if (atomic_load(stop)) return ECANCELED;
		if (at + length < size) io_start_reading(file, (off_t)(at + length), DIGEST_PIECE);
		const int error = file_read_at(file, piece, length, (off_t)at);
		if (error) return error;
		if (EVP_DigestUpdate(context, piece, length) != 1) return ENOMEM;
		at += length;
	}
	return 0;
}

int digest_of_file(int file, uint64_t size, bool patient, const atomic_bool *stop, unsigned char *digest) {
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	char *piece = malloc(DIGEST_PIECE);
	int error = context && piece && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 ? 0 : ENOMEM;
	if (!error) error = add_file(context, piece, file, size, patient, stop);
	if (!error && EVP_DigestFinal_ex(context, digest, NULL) != 1) error = ENOMEM;
	free(piece);
	EVP_MD_CTX_free(context);
	return error;
}

/* --- those of files --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed;
static struct kept {
	uint64_t version; /* hash of the file's version; 0: none */
	unsigned char digest[DIGEST_LENGTH];
} * table; /* guarded by the mutex, as is the seed; NULL until the first use */

/* Returns the place for a version, whose hash is written to *key. The caller holds the mutex, and there is a table. */
static struct kept *place_of(const struct file_version *version, uint64_t *key) {
	*key = file_version_hash(seed, version) | 1;
	return &table[*key / 2 % DIGESTS_KEPT];
}

bool digest_find(const struct file_version *version, unsigned char *digest) {
	uint64_t key;
	pthread_mutex_lock(&mutex);
	const struct kept *k = table && !file_version_recent(version) ? place_of(version, &key) : NULL;
	const bool found = k && k->version == key;
	if (found) memcpy(digest, k->digest, DIGEST_LENGTH);
	pthread_mutex_unlock(&mutex);
	return found;
}

void digest_keep(const struct file_version *version, const unsigned char *digest) {
	uint64_t key;
	pthread_mutex_lock(&mutex);
	if (!table && getentropy(&seed, sizeof seed) == 0) table = calloc(DIGESTS_KEPT, sizeof *table);
	struct kept *k = table && !file_version_recent(version) ? place_of(version, &key) : NULL;
	if (k) k->version = key;
	if (k) memcpy(k->digest, digest, DIGEST_LENGTH);
	pthread_mutex_unlock(&mutex);
}
