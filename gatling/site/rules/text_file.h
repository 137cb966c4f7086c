/* text_file.h - small files beside the content, in which the owner configures how it is served. They are read again
 * when they change; each mistake in one is reported once, whichever worker finds it. */
#ifndef GATLING_SITE_RULES_TEXT_FILE_H
#define GATLING_SITE_RULES_TEXT_FILE_H

#include "gatling/base/file_version.h"
#include "gatling/files/tree.h"

/* What a worker knows of a file; all zero before the first text_file_look(). */
struct text_file {
	struct file_version version;
	uid_t owner; /* of the version that was read, if error is 0 */
	int error;   /* of the last text_file_look(): 0, ENOENT, or why the file cannot be read */
	bool looked, recent;
};

enum text_state {
	TEXT_SAME, /* unchanged */
	TEXT_NEW,  /* *text is malloc'd, with a NUL behind its end */
	TEXT_NONE, /* the file does not exist */
	/* it cannot be read: ->error; EFBIG: over LINES_TEXT_MAX; EINVAL: it is no regular file; ENOLINK: it is a symlink
	 * to nothing that the server can see */
	TEXT_FAILED
};

/* Checks whether the file has changed since the last call, and if so reads it. It need not be world-readable. */
enum text_state text_file_look(struct text_file *file, const struct tree *tree, const char *path, char **text,
							   size_t *length);

/* Has the next text_file_look() read the file again, since there is no memory for its contents. */
void text_file_again(struct text_file *file);

/* Reports a mistake in a line of this version of the file (notice.h). line 0: in the file as a whole. */
void text_file_complain(const struct text_file *file, const char *path, unsigned line, const char *mistake);

/* The process keeps the last good text of each file, for a worker that first sees a broken one. text_file_good() keeps
 * a copy, or forgets the file if text is NULL; without memory it keeps the one before. text_file_last_good() returns a
 * copy, with a NUL behind its end, to be freed with free(), or NULL if there is none or no memory. */
void text_file_good(const char *path, const char *text, size_t length);
char *text_file_last_good(const char *path, size_t *length);

#endif
