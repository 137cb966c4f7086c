/* subjects.h - the names that are to have certificates, and when each is due. */
#ifndef GATLING_ACME_SUBJECTS_H
#define GATLING_ACME_SUBJECTS_H

#include <stdint.h>
#include <sys/queue.h>

#include "gatling/acme/acme_options.h"
#include "gatling/acme/attempt.h"
#include "gatling/acme/store.h"

struct subject {
	char name[STORE_NAME_MAX];
	int64_t due_s;     /* when its next attempt is, in seconds since the epoch */
	int64_t ask_s;     /* when the authority is asked next whether it has to be renewed before */
	unsigned failures; /* since the last success */
	bool listed;       /* there is a directory, or an option, for it */
	bool told;         /* its state has been sent to the server */
	bool good;         /* its certificate is valid, and the last attempt has not failed */
	struct attempt *attempt;
	TAILQ_ENTRY(subject) all;
};

struct subjects {
	unsigned count;
	bool scanned;                                /* the names have been scanned */
	bool told;                                   /* it has been reported that there are too many */
	void (*gone)(void *owner, const char *name); /* called for a name that is dropped */
	void *owner;
	TAILQ_HEAD(, subject) all;
};

/* Returns whether a public authority can issue a certificate for a name: it has at least one dot, and is neither an
 * address nor a name for private use (RFC 6761, RFC 6762, RFC 7686, RFC 8375). */
bool subject_possible(const char *name);

/* Returns whether a name is a public address (RFC 8738), written as browsers do (RFC 5952), without brackets. */
bool subject_is_address(const char *name);

/* Adds new names: those of directories in the root, and those of options. Directories with the names of addresses, IPv6
 * in brackets, count if there is a profile: without one Let's Encrypt gives them no certificates. Drops names that are
 * gone, once they are due, and takes their certificates out of use. Returns 0, or -1 with errno and without changes if
 * the root could not be read. */
int subjects_scan(struct subjects *subjects, const struct acme_options *options, const char *root, int64_t now_s);

/* Sets when the subject is due. A certificate is renewed at a random time in the day (or in a twelfth of its lifetime,
 * if that is shorter) before a third of its lifetime is left. Without a valid certificate of this authority, the
 * subject is due now. */
void subject_schedule(struct subject *subject, const struct acme_options *options, int64_t now_s);

/* Restores the failures and the pause from the last process: a new start is no reason to ask an authority sooner. */
void subject_recall(struct subject *subject, const char *directory);

/* Returns the last moment, since the epoch, at which a certificate should be renewed: when a third of its lifetime is
 * left. */
int64_t subject_renewal_s(const struct store_dates *dates);

/* Postpones the next attempt after a failure. */
void subject_put_off(struct subject *subject, int64_t now_s);

/* Makes the subjects that have failed due now, and the questions about the others. */
void subjects_hurry(struct subjects *subjects, int64_t now_s);

/* Returns whether the next attempt is due. A pause that is longer than any was begun while the clock was ahead, and
 * counts as over. */
bool subject_is_due(const struct subject *subject, int64_t now_s);

/* Returns the listed subject with the fewest failures that is due and has no attempt under way, or NULL. */
struct subject *subjects_due(const struct subjects *subjects, int64_t now_s);

/* Returns a listed subject with a good certificate about which the authority is to be asked now, or NULL. */
struct subject *subjects_to_ask(const struct subjects *subjects, int64_t now_s);

#endif
