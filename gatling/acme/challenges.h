/* challenges.h - proofs that a name is ours (RFC 8555, section 8.3), in memory that the process that gets certificates
 * shares with the workers. That process writes, and the workers read. */
#ifndef GATLING_ACME_CHALLENGES_H
#define GATLING_ACME_CHALLENGES_H

#include <stdbool.h>

#include "gatling/base/slice.h"

enum {
	CHALLENGES_MAX = 16,       /* proofs at a time */
	CHALLENGE_TOKEN_MAX = 128, /* bytes; those of RFC 8555 are at least 22 long, Let's Encrypt's 43 */
	CHALLENGE_PROOF_MAX = 256  /* bytes: the token, a dot, and a hash of the account's key */
};

struct challenges;

/* Returns challenges in memory that is shared with processes forked later, or NULL with errno. */
struct challenges *challenges_new(void);

/* Makes the memory read-only for this process, but not for others. */
void challenges_protect(struct challenges *challenges);
void challenges_free(struct challenges *challenges); /* NULL is allowed */

/* Adds the proof for a token. Only one process may write. owner: for challenges_remove_all(), not NULL. Returns false
 * if there are too many proofs, or if either text is not valid (RFC 8555). */
bool challenges_put(struct challenges *challenges, const void *owner, struct slice token, struct slice proof);
void challenges_remove(struct challenges *challenges, struct slice token);

/* Removes the proofs of an owner, or if it is NULL, whatever another process has left in free places. */
void challenges_remove_all(struct challenges *challenges, const void *owner);

/* Copies the proof for a token to proof (CHALLENGE_PROOF_MAX bytes). Returns its length, or 0 if there is none. */
size_t challenges_find(const struct challenges *challenges, struct slice token, char *proof);

#endif
