/* site.h - a directory to serve, for fuzzers. */
#ifndef TESTS_FUZZ_SITE_H
#define TESTS_FUZZ_SITE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/quic/require.h"

/* Adds a file of that many zeros to the directory. */
static inline void site_add(int root, const char *name, size_t length) {
	char *zeros = calloc(1, length);
	const int file = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	require(zeros && file != -1 && write(file, zeros, length) == (ssize_t)length);
	close(file);
	free(zeros);
}

/* Returns a descriptor of a new directory, with a small file, "s", and a big one, "b". */
static inline int site_make(void) {
	char directory[] = "/tmp/gatling-fuzz-XXXXXX";
	require(mkdtemp(directory) && chmod(directory, 0755) == 0);
	const int root = open(directory, O_RDONLY | O_DIRECTORY);
	require(root != -1);
	site_add(root, "s", 100);
	site_add(root, "b", 300000);
	return root;
}

#endif
