/* guard.h - .htaccess and .htaccess_global: who may have what is below a directory, or in a site, by Basic
 * authentication (RFC 7617). The first line is the realm, each further one USER:HASH with a hash of crypt(3); empty
 * lines and those that begin with # do not count. Where such a file cannot be read or understood, nobody gets in. */
#ifndef GATLING_GUARD_H
#define GATLING_GUARD_H

#include "gatling/access.h"
#include "gatling/jobs.h"
#include "gatling/request.h"
#include "gatling/tree.h"

enum {
	GUARD_REALM_MAX = 256, /* bytes of a realm, */
	GUARD_USER_MAX = 256,  /* of a name: a longer one is nobody's, */
	GUARD_PASSWORD_MAX = 511,
	GUARD_CHECKS = 128, /* of passwords that wait, and for one address (see attempts.h) */
	GUARD_CHECKS_EACH = 4,
	GUARDS_MAX = 1024, /* files that are kept */
	GUARDS_OF_PATH = 2,
	GUARD_KNOWN = 1024, /* names with passwords that are remembered to be right, */
	GUARD_WRONG = 64    /* and wrong */
};

struct guard; /* one state of one file */

void guard_retain(struct guard *guard);
void guard_release(struct guard *guard);

struct guards; /* a worker's */

/* NULL: ENOMEM. Passwords are checked as jobs: most hashes are made to take long. */
struct guards *guards_new(const struct tree *tree, struct jobs *jobs);
void guards_free(struct guards *guards); /* after jobs_free() */

/* The guard that the file at path (relative to the root) sets, with a reference; looks at the file. NULL: none. */
struct guard *guards_find(struct guards *guards, const char *path);

/* All guards that a file at that path has but for that of its site: the .htaccess of its directory, or of the nearest
 * one above that has one; and of the first directory on the way to it, which a Host may name as a site. To
 * guard[GUARDS_OF_PATH], each with a reference, or NULL. */
void guards_of_path(struct guards *guards, struct slice file, struct guard **guard);

enum verdict {
	GUARD_ADMITS,
	GUARD_ASKS,    /* for another name and password: 401 */
	GUARD_FORBIDS, /* to all: 403 */
	GUARD_LIMITS,  /* too many attempts: 429 */
	GUARD_BUSY,    /* too much to check, or its file cannot be read just now: 503 */
	GUARD_WAITS    /* for *job */
};

struct admission {
	struct slice user;  /* of who is admitted; good until the next call, as */
	struct slice lines; /* the field lines that 401 and 429 take */
	struct job *job;
};

/* patient: the client can be made to wait. now_ms is of the monotonic clock. */
enum verdict guards_check(struct guards *guards, struct guard *guard, const struct request *request,
						  const struct peer *peer, bool patient, int64_t now_ms, struct admission *admission);

#endif
