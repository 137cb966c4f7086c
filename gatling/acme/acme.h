/* acme.h - gets certificates for the sites and renews them (RFC 8555), by a process that stays outside the document
 * root, as the user who started the server, and reads nothing from clients. uacme(1) speaks with the authority. */
#ifndef GATLING_ACME_ACME_H
#define GATLING_ACME_ACME_H

#include <stdint.h>

#include "gatling/acme/acme_options.h"
#include "gatling/acme/challenges.h"

struct acme;

/* Starts the process, before the root and the user change. root: the document root. *acme: NULL if that is not wanted.
 * Returns 0, or -1 after printing an error. */
int acme_start(const struct acme_options *options, const char *root, struct acme **acme);

/* The proofs for the workers to give. */
const struct challenges *acme_challenges(const struct acme *acme);

/* What is known of a name, as store.h has it. result: NULL: it is none any more. */
struct acme_state {
	const char *name, *result;
	int64_t until_s; /* when its certificate ceases to be valid, since the epoch; 0: it has none */
	bool good;       /* the last attempt was */
};
typedef void acme_show(void *owner, const struct acme_state *state);

/* Prints what the process had to say since the last call, and tells show() (unless it is NULL) of the names; once, that
 * it has ended. */
void acme_collect(struct acme *acme, acme_show *show, void *owner);

/* Ends the process, so that a successor of this server can have its own. */
void acme_stop(struct acme *acme);
void acme_free(struct acme *acme); /* NULL is allowed */

#endif
