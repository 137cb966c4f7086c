/* apache.h - reads the directives of a .htaccess of Apache 2.4 that are about who may have a file. What is not
 * understood there closes the directory: the caller has to deny access. Everything else in the file is ignored. */
#ifndef GATLING_SITE_ACCESS_APACHE_H
#define GATLING_SITE_ACCESS_APACHE_H

#include "gatling/site/access/access_rules.h"

/* Returns whether a line, trimmed, begins as a directive of Apache does. */
bool apache_begins(struct slice line);

struct apache_findings {
	unsigned line;    /* of what is wrong; 0: the file as a whole */
	unsigned ignored; /* the line of the first directive that is ignored, 0 if there is none */
	bool any;         /* there is a directive about access */
};

/* Reads a text into *access, which refers to it. Joins lines that a backslash continues, in the text itself. Returns
 * NULL, or what is wrong: then *access is to be freed as well, and says nothing. */
const char *apache_read(struct access_rules *access, char *text, size_t length, struct apache_findings *findings);

#endif
