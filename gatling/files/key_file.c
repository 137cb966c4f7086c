/* key_file.c - see key_file.h. */
#include "gatling/files/key_file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/coding.h"

/* Takes a suffix, in either case, off the end of a name. Returns whether it had one. */
static bool take_suffix(struct slice *name, const struct slice *suffix, size_t count) {
	for (size_t i = 0; i < count; i++) {
		if (!suffix[i].length || !slice_ends_nocase(*name, suffix[i])) continue;
		name->length -= suffix[i].length;
		return true;
	}
	return false;
}

/* Takes the suffixes of copies off the end of a name. Returns whether one is that of a compressed copy. */
static bool take_copies(struct slice *name) {
	static const struct slice old[] = {SLICE("~"), SLICE(".bak"), SLICE(".old"), SLICE(".orig"), SLICE(".save")};
	bool compressed = false;
	while (true) {
		if (take_suffix(name, coding_suffix, CODINGS)) compressed = true;
		else if (!take_suffix(name, old, sizeof old / sizeof *old)) return compressed;
	}
}

bool key_file_named(struct slice path) {
	if (!path.length || !strchr("degkmrtyz~", text_lower(path.at[path.length - 1]))) return false; /* most names */
	(void)take_copies(&path);
	return slice_ends_nocase(path, SLICE(".pem")) || slice_ends_nocase(path, SLICE(".key"));
}

bool key_file_is_opaque(struct slice path, uint64_t size) {
	return key_file_named(path) && (size > KEY_FILE_MAX || take_copies(&path));
}

bool key_file_has_key(struct slice text) {
	static const char mark[] = "PRIVATE KEY";
	return memmem(text.at, text.length, mark, sizeof mark - 1);
}

/* The files of TLS, sorted. There are few, and workers look for one only when they load a file. */
static pthread_mutex_t tls_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t *tls_inode; /* guarded by the mutex */
static size_t tls_inodes;
static atomic_bool any_tls_file;

static int compare(const void *a, const void *b) {
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

void key_files_set_tls(uint64_t *inode, size_t count) {
	if (count) qsort(inode, count, sizeof *inode, compare);
	pthread_mutex_lock(&tls_mutex);
	uint64_t *last = tls_inode;
	tls_inode = inode;
	tls_inodes = count;
	atomic_store(&any_tls_file, count > 0);
	pthread_mutex_unlock(&tls_mutex);
	free(last);
}

bool key_file_is_of_tls(const struct file_version *version) {
	if (!atomic_load(&any_tls_file)) return false;
	const uint64_t inode = file_version_hash_inode(version->device, version->inode);
	pthread_mutex_lock(&tls_mutex);
	const bool is = tls_inodes && bsearch(&inode, tls_inode, tls_inodes, sizeof inode, compare);
	pthread_mutex_unlock(&tls_mutex);
	return is;
}
