/* result.h - how functions that compress into memory end. */
#ifndef GATLING_CODEC_RESULT_H
#define GATLING_CODEC_RESULT_H

#include <stddef.h>
#include <stdlib.h>

/* Writes out, which is malloc'd, to *body, and frees the memory behind its first `size` bytes. If there is an error,
 * frees all of it instead; it may be NULL then. Returns the error. */
static inline int result_end(int error, char *out, size_t size, char **body) {
	if (error) {
		free(out);
		return error;
	}
	char *fitting = realloc(out, size + 1);
	*body = fitting ? fitting : out;
	return 0;
}

#endif
