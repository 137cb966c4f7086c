/* text_file.h - small files that the owner puts beside the content to say how it is served: read again when they
 * change, and what is wrong with one is said once, whoever finds it. */
#ifndef GATLING_BASE_TEXT_FILE_H
#define GATLING_BASE_TEXT_FILE_H

#include "gatling/base/docroot.h"
#include "gatling/base/file_version.h"

enum { TEXT_FILE_MAX = 1024 * 1024 /* bytes */ };

/* What is known of one; all zero at first. */
struct text_file {
	struct file_version identity;
	int error; /* of the last look: 0, ENOENT or what kept it from being read */
	bool looked, recent;
};

enum text_state {
	TEXT_SAME,  /* as at the last look */
	TEXT_NEW,   /* *text is malloc'd, with a NUL behind its end */
	TEXT_NONE,  /* there is no such file any more */
	TEXT_FAILED /* it cannot be read: ->error, EFBIG: over TEXT_FILE_MAX */
};

/* Looks whether the file has changed since the last look, and reads it. It need not be readable for everybody. */
enum text_state text_file_look(struct text_file *file, const struct docroot *docroot, const char *path, char **text,
							   size_t *length);

/* Says what is wrong with (a line of) the file in this state (notice.h). line 0: with all of it. */
void text_file_complain(const struct text_file *file, const char *path, unsigned line, const char *what);

/* What was good last of a file is kept for the process, so that a worker that sees it first when it is broken does as
 * the others do. text_file_good() keeps a copy (for want of memory the one before), text NULL: nothing any more;
 * text_file_last_good() gives a malloc'd one, with a NUL behind its end. NULL: there is none, or no memory. */
void text_file_good(const char *path, const char *text, size_t length);
char *text_file_last_good(const char *path, size_t *length);

#endif
