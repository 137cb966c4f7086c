/* report.h - says once why an existing file is not served, and what to do about it (notice.h). */
#ifndef GATLING_FILES_REPORT_H
#define GATLING_FILES_REPORT_H

#include "gatling/base/file_version.h"
#include "gatling/files/docroot.h"

enum { UNSERVED_REPORTS_MAX = 64 /* of each kind, while the server runs */ };

/* Reports why a path is not served: because of its mode, or that of a directory on the way, or because it may hold a
 * private key that cannot be found. Does not report other files of private keys, which are not meant to be read. */
void report_unserved(const struct docroot *docroot, const char *path);

/* Reports a symbolic link at path that leads out of the chroot(2) in which the server is. Returns whether there is one,
 * reported or not. false: it leads elsewhere, or that is unknown. */
bool report_link(const struct docroot *docroot, const char *path);

/* Reports that the file at path, a precompressed copy of the original, is not sent because the original is newer. */
void report_outdated(const char *path, const char *original, const struct file_version *original_version);

#endif
