/* acme.h - gets and renews certificates for the sites (RFC 8555), in a process that stays outside the document root,
 * runs as the user who started the server, and reads nothing from clients. uacme(1) talks to the authority. */
#ifndef GATLING_ACME_ACME_H
#define GATLING_ACME_ACME_H

#include <stdint.h>

#include "gatling/acme/acme_options.h"
#include "gatling/acme/challenges.h"

struct acme;

/* Starts the process. Call it before the root and the user change. root: the document root. *acme: NULL if options->on
 * is false. Returns 0, or -1 after printing an error. */
int acme_start(const struct acme_options *options, const char *root, struct acme **acme);

/* Returns the proofs with which the workers answer challenges. */
const struct challenges *acme_challenges(const struct acme *acme);

/* What is known about a name. result: of the last attempt, as in store.h; NULL: the name is gone. */
struct acme_state {
	const char *name, *result;
	int64_t until_s; /* when its certificate ceases to be valid, since the epoch; 0: it has none */
	bool good;       /* the last attempt succeeded */
};
typedef void acme_show(void *owner, const struct acme_state *state);

/* Logs the messages of the process since the last call, and passes the states of names to show(), which may be NULL.
 * Logs once that the process has ended. */
void acme_collect(struct acme *acme, acme_show *show, void *owner);

/* Ends the process, so that a successor of this server can have its own. */
void acme_stop(struct acme *acme);

void acme_free(struct acme *acme); /* NULL is allowed */

#endif
