/* site_file.h - the files at the top of a site that configure it. They are prefetched, checked and read; those of rules
 * are neither served nor listed, as names that begin with a dot never are. */
#ifndef GATLING_FILES_SITE_FILE_H
#define GATLING_FILES_SITE_FILE_H

#include <stdbool.h>

#include "gatling/base/slice.h"

enum site_file { SITE_HEADERS, SITE_REDIRECTS, SITE_LIMITS, SITE_PASSWORDS, SITE_FILES };
extern const char *const site_file_name[SITE_FILES];

/* Returns whether a name is that of a file of rules, or of a precompressed copy of one. */
bool site_file_is_rules(struct slice name);

#endif
