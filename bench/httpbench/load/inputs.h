/* inputs.h - the files that options name, and the header fields in them and in --header. What is wrong in them is
 * refused, as by usage.h. */
#ifndef BENCH_INPUTS_H
#define BENCH_INPUTS_H

#include "bench/httpbench/load/plan.h"

enum {
	INPUT_FILE_MAX = 1 << 30, /* bytes of --urls, --heads and --expect */
	INPUT_URLS_MAX = 100000
};

/* Reads the whole file or pipe that is the value of an option, and appends a '\0'. Refuses more than `most` bytes, as
 * devices may have no end. The caller frees the result. */
char *input_file(const char *option, const char *path, size_t most, size_t *length);

struct input_urls {
	char *text;     /* of the file, with a NUL behind each URL; */
	char **url;     /* they point into it */
	unsigned *line; /* where each stands */
	unsigned count;
};

/* Reads URLs from a file, one a line. Empty lines, and lines that begin with #, are skipped. The caller frees text, url
 * and line. */
void input_urls(struct input_urls *urls, const char *path);

/* Reads the fields of several heads from a file; empty lines separate the heads. */
void input_heads(struct plan *plan, const char *path);

/* Returns whether a line begins with a name and a colon. To HTTP/2 a line like ":path: /" would be one without a name,
 * and the server's complaint would look like a fault of the server. */
bool input_is_header(const char *line);

/* Returns whether a line is a field with that name. */
bool input_is_field(const char *line, const char *name);

/* Refuses "Connection: close", since the server would close connections on which other requests are under way. */
void input_check_header(const char *option, const char *line);

#endif
