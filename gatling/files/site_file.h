/* site_file.h - the files at the top of a site that configure it. They are prefetched, checked and read, and neither
 * served nor listed: path_decode() refuses names that begin with a dot, site_file_is_rules() names those of files here
 * that begin with '_'. Others would be served. */
#ifndef GATLING_FILES_SITE_FILE_H
#define GATLING_FILES_SITE_FILE_H

#include <stdbool.h>

#include "gatling/base/slice.h"

enum site_file { SITE_HEADERS, SITE_REDIRECTS, SITE_LIMITS, SITE_PASSWORDS, SITE_FILES };
extern const char *const site_file_name[SITE_FILES]; /* each begins with '_' or a dot */

/* Returns whether a name is that of a file of rules, or of a precompressed copy of one. */
bool site_file_is_rules(struct slice name);

#endif
