/* unserved.h - reports once why an existing file is not served, and what to do about it (notice.h). */
#ifndef GATLING_FILES_UNSERVED_H
#define GATLING_FILES_UNSERVED_H

#include "gatling/base/file_version.h"
#include "gatling/files/docroot.h"

enum { UNSERVED_REPORTS_MAX = 64 /* of each kind, while the server runs */ };

/* Reports why a path cannot be read: because of its mode, or that of a directory on the way. Does not report files of
 * private keys (.pem, .key), which are not meant to be read. */
void unserved_report(const struct docroot *docroot, const char *path);

/* Reports that the file at path, a precompressed copy of the original, is not sent because the original is newer. */
void unserved_report_outdated(const char *path, const char *original, const struct file_version *original_version);

/* Returns whether the name is that of a file of private keys. */
bool unserved_is_key(struct slice path);

#endif
