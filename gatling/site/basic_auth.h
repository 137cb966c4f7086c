/* basic_auth.h - .htaccess and .htaccess_global: who may have what is below a directory, or in a site, by Basic
 * authentication (RFC 7617). The first line is the realm, each further one USER:HASH with a hash of crypt(3); empty
 * lines and those that begin with # do not count. Where such a file cannot be read or understood, nobody gets in. */
#ifndef GATLING_SITE_BASIC_AUTH_H
#define GATLING_SITE_BASIC_AUTH_H

#include "gatling/base/docroot.h"
#include "gatling/base/job.h"
#include "gatling/http/request.h"
#include "gatling/log/access.h"

enum {
	AUTH_REALM_MAX = 256, /* bytes of a realm, */
	AUTH_USER_MAX = 256,  /* of a name: a longer one is nobody's, */
	AUTH_PASSWORD_MAX = 511,
	AUTH_CHECKS = 128, /* of passwords that wait, and for one address (see attempts.h) */
	AUTH_CHECKS_EACH = 4,
	AUTH_REALMS_MAX = 1024, /* files that are kept */
	REALMS_OF_PATH = 2,
	AUTH_KNOWN = 1024, /* names with passwords that are remembered to be right, */
	AUTH_WRONG = 64    /* and wrong */
};

struct realm; /* one state of one file */

void realm_retain(struct realm *realm);
void realm_release(struct realm *realm);

struct basic_auth; /* a worker's */

/* NULL: ENOMEM. Passwords are checked as jobs: most hashes are made to take long. */
struct basic_auth *basic_auth_new(const struct docroot *docroot, struct jobs *jobs);
void basic_auth_free(struct basic_auth *auth); /* after jobs_free() */

/* The guard that the file at path (relative to the root) sets, with a reference; looks at the file. NULL: none. */
struct realm *basic_auth_find(struct basic_auth *auth, const char *path);

/* All realms that a file at that path has but for that of its site: the .htaccess of its directory, or of the nearest
 * one above that has one; and of the first directory on the way to it, which a Host may name as a site. To
 * guard[REALMS_OF_PATH], each with a reference, or NULL. */
void basic_auth_realms(struct basic_auth *auth, struct slice file, struct realm **realm);

enum auth_result {
	AUTH_ADMITTED,
	AUTH_REQUIRED,  /* for another name and password: 401 */
	AUTH_FORBIDDEN, /* to all: 403 */
	AUTH_LIMITED,   /* too many attempts: 429 */
	AUTH_BUSY,      /* too much to check, or its file cannot be read just now: 503 */
	AUTH_PENDING    /* for *job */
};

struct auth_answer {
	struct slice user;  /* of who is admitted; good until the next call, as */
	struct slice lines; /* the field lines that 401 and 429 take */
	struct job *job;
};

/* patient: the client can be made to wait. now_ms is of the monotonic clock. */
enum auth_result basic_auth_check(struct basic_auth *auth, struct realm *realm, const struct request *request,
								  const struct peer *peer, bool patient, int64_t now_ms, struct auth_answer *admission);

#endif
