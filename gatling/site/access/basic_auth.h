/* basic_auth.h - who may have what is in a directory (.htaccess) or on a site (.htaccess_global): clients with certain
 * addresses, or those with a password, by Basic authentication (RFC 7617). In gatling's own format the first line of
 * such a file is the realm, each further one USER:HASH with a hash of crypt(3), or "allow ADDRESS", for clients that
 * need no password; empty lines and lines that begin with '#' are skipped. A .htaccess may also have directives of
 * Apache (access/apache.h). If the file is empty, unreadable or malformed, access is denied. */
#ifndef GATLING_SITE_ACCESS_BASIC_AUTH_H
#define GATLING_SITE_ACCESS_BASIC_AUTH_H

#include "gatling/files/docroot.h"
#include "gatling/files/names.h"
#include "gatling/http/request.h"
#include "gatling/log/access.h"
#include "gatling/site/access/password_check.h"
#include "gatling/site/access/permission.h"
#include "gatling/site/access/realm.h"

enum {
	AUTH_LINES_MAX = 2 * AUTH_REALM_MAX + 128, /* bytes of the field lines of a 401 */
	GUARD_FILES_MAX = 16                       /* directories on a path that have a .htaccess of Apache */
};

/* What has to admit a request. */
enum guard_part {
	GUARD_ORDER, /* Order, Allow and Deny of Apache 2.2 */
	GUARD_TESTS, /* what a .htaccess says otherwise */
	GUARD_SITE,  /* a .htaccess_global */
	GUARD_PARTS
};

/* Who may have what is at a path. Zero: nobody. */
struct guard {
	enum permission permission;
	bool temporary; /* nobody may, only since a file could not be read for a reason that may soon be gone */
	bool unlisted;  /* the directory is not listed */
	bool by_name;   /* other names in the directory may have another guard, also that of the directory itself */
	bool any;       /* whom GUARD_ORDER admits, GUARD_TESTS need not admit, and the other way round */
	/* With PERMISSION_REALM: those that have to admit a request, or NULL, and the index of the rule in each. */
	struct realm *realm[GUARD_PARTS];
	unsigned rule[GUARD_PARTS];
};

void guard_release(struct guard *guard); /* its realms */

struct basic_auth; /* of a worker */

/* Returns NULL without memory. Passwords are checked as jobs, since most hashes take long by design. */
struct basic_auth *basic_auth_new(const struct tree *tree, struct names *names, struct jobs *jobs);
void basic_auth_free(struct basic_auth *auth); /* after jobs_free() */

/* See realms_set_root(). */
void basic_auth_set_root(struct basic_auth *auth, const char *path, const char *name);

/* Returns the guard that the files at path and above (relative to the root; NULL: none) make together. Reads a file if
 * it has changed. */
struct guard basic_auth_of_files(struct basic_auth *auth, const char *path, const char *above);

/* Returns the guard of a file, besides that of its site, whether it exists or not: of the .htaccess in its directory,
 * or in the nearest one above that has one; and of the .htaccess_global in the first directory of the path, which may
 * be a site of its own. Directories with names that are too long cannot exist: those above them count. A .htaccess of
 * Apache replaces those above it only in what it says, as it does there. lately: may miss a file that was created in
 * the last NAMES_LATELY_MS. */
struct guard basic_auth_guard(struct basic_auth *auth, struct slice file, bool lately);

struct auth_answer {
	/* valid until the next call: */
	struct slice user;  /* who is admitted, or with a password is not; absent without one */
	struct slice lines; /* the field lines for 401 and 429 */
	struct job *job;
};

/* The client of a request. */
struct auth_client {
	const struct peer *peer;
	bool is_known; /* it is the address of the client; otherwise that of a proxy that has named none */
};

/* Returns whether a part of a guard admits a request. may_wait: the request may wait for a job. now_ms is of the
 * monotonic clock. */
enum auth_result basic_auth_check(struct basic_auth *auth, const struct guard *guard, enum guard_part part,
								  const struct request *request, const struct auth_client *client, bool may_wait,
								  int64_t now_ms, struct auth_answer *answer);

#endif
