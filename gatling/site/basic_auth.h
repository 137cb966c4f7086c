/* basic_auth.h - Basic authentication (RFC 7617) for a directory (.htaccess) or a site (.htaccess_global). The first
 * line of such a file is the realm, each further one USER:HASH with a hash of crypt(3); empty lines and lines that
 * begin with '#' are skipped. If the file is empty, unreadable or malformed, access is denied. */
#ifndef GATLING_SITE_BASIC_AUTH_H
#define GATLING_SITE_BASIC_AUTH_H

#include "gatling/base/permission.h"
#include "gatling/files/docroot.h"
#include "gatling/files/names.h"
#include "gatling/http/request.h"
#include "gatling/log/access.h"
#include "gatling/site/password_check.h"

enum {
	AUTH_REALM_MAX = 256,                      /* bytes of the name of a realm */
	AUTH_LINES_MAX = 2 * AUTH_REALM_MAX + 128, /* bytes of the field lines of a 401 */
	AUTH_REALMS_MAX = 1024,                    /* files that are remembered */
	REALMS_OF_PATH = 2
};

struct realm; /* one version of one file; not thread-safe */

/* Who may have what is at a path. Zero: nobody. */
struct guard {
	enum permission permission;
	bool temporary; /* nobody may, only since a file could not be read for a reason that may soon be gone */
	struct realm *realm[REALMS_OF_PATH]; /* with PERMISSION_REALM: those that have to admit a request, or NULL */
};

void guard_release(struct guard *guard); /* its realms */

struct basic_auth; /* of a worker */

/* Returns NULL without memory. Passwords are checked as jobs, since most hashes take long by design. */
struct basic_auth *basic_auth_new(const struct docroot *docroot, struct names *names, struct jobs *jobs);
void basic_auth_free(struct basic_auth *auth); /* after jobs_free() */

/* Returns the guard that the files at path and above (relative to the root; NULL: none) make together. Reads a file if
 * it has changed. */
struct guard basic_auth_of_files(struct basic_auth *auth, const char *path, const char *above);

/* Returns the guard of a file, besides that of its site, whether it exists or not: of the .htaccess in its directory,
 * or in the nearest one above that has one; and of the .htaccess_global in the first directory of the path, which may
 * be a site of its own. Directories with names that are too long cannot exist: those above them count. lately: may miss
 * a file that was created in the last NAMES_LATELY_MS. */
struct guard basic_auth_guard(struct basic_auth *auth, struct slice file, bool lately);

struct auth_answer {
	/* valid until the next call: */
	struct slice user;  /* with AUTH_ADMITTED */
	struct slice lines; /* the field lines for 401 and 429 */
	struct job *job;
};

/* Checks the credentials of a request for a realm of a guard. may_wait: the request may wait for a job. now_ms is of
 * the monotonic clock. */
enum auth_result basic_auth_check(struct basic_auth *auth, struct realm *realm, const struct request *request,
								  const struct peer *peer, bool may_wait, int64_t now_ms, struct auth_answer *answer);

#endif
