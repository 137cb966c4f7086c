/* password_check.h - checks passwords of realms (basic_auth.h). It limits what guessing costs: hashes take long by
 * design, so one thread checks them in an order that is fair to owners, realms and addresses, and results are
 * remembered. */
#ifndef GATLING_SITE_ACCESS_PASSWORD_CHECK_H
#define GATLING_SITE_ACCESS_PASSWORD_CHECK_H

#include "gatling/base/job.h"
#include "gatling/base/slice.h"
#include "gatling/site/access/users.h"

enum {
	AUTH_PASSWORD_MAX = 511, /* bytes */
	AUTH_CHECKS = 128,       /* passwords that may wait for a check */
	AUTH_CHECKS_EACH = 4,    /* of them, for one address (see address_table.h) */
	AUTH_ATTEMPTS = 10,      /* passwords that an address may try, in all workers together */
	AUTH_ATTEMPT_MS = 3000,  /* it regains one after this time */
	AUTH_ADDRESSES = 16384,  /* addresses for which attempts are counted */
	AUTH_KNOWN = 1024,       /* right passwords that are remembered */
	AUTH_WRONG = 64          /* wrong passwords that are remembered */
};

/* The value of a refusal is the status of its response. */
enum auth_result {
	AUTH_PENDING, /* the request has to wait for the job */
	AUTH_ADMITTED = 200,
	AUTH_REQUIRED = 401,  /* other credentials are needed */
	AUTH_FORBIDDEN = 403, /* nobody is admitted with this hash */
	AUTH_LIMITED = 429,   /* too many attempts */
	AUTH_BUSY = 503       /* too many checks, no memory, or the file cannot be read for now */
};

struct password_checks; /* of a worker */

/* Returns NULL without memory. */
struct password_checks *password_checks_new(struct jobs *jobs);
void password_checks_free(struct password_checks *checks); /* after jobs_free() */

struct password_question {
	uint64_t realm;              /* the id of its content */
	uint64_t owner;              /* the hash of the first directory of its path, which may be that of a site */
	struct slice users;          /* its lines USER:HASH */
	const char *user, *password; /* in one piece of memory, with a NUL between them */
	uint64_t network;            /* of the client (address_table.h) */
	bool may_wait;               /* the request may wait for a job */
	int64_t now_ms;              /* of the monotonic clock */
};

/* Checks a password. With AUTH_PENDING, *job is the job to wait for. */
enum auth_result password_check(struct password_checks *checks, const struct password_question *question,
								struct job **job);

/* Begins to measure kinds of hashes (password_cost.h). Returns the job to wait for, after which it is to be asked again
 * whether they are measured; or NULL without memory or a thread. */
struct job *password_measure(struct password_checks *checks, unsigned kinds);

#endif
