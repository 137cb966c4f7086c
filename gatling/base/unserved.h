/* unserved.h - why something that is there is not served: said once (notice.h), with what to do about it. */
#ifndef GATLING_BASE_UNSERVED_H
#define GATLING_BASE_UNSERVED_H

#include "gatling/base/docroot.h"
#include "gatling/base/file_version.h"

enum { UNSERVED_REPORTS_MAX = 64 /* that a server tells of, of each kind */ };

/* Tells why a path cannot be had: its mode, or that of a directory on the way. Nothing of what holds keys (.pem, .key),
 * which is not to be had, and nothing if it can. */
void unserved_report(const struct docroot *docroot, const char *path);

/* Tells that the file at path is not sent for the original, which is younger, in another coding. */
void unserved_report_outdated(const char *path, const char *original, const struct file_version *its_identity);

/* Whether that is a file of keys, by its name. */
bool unserved_is_key(struct slice path);

#endif
