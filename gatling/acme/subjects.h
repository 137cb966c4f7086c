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
	unsigned failures; /* since the last success */
	bool listed;       /* its directory, or option, is there */
	bool told;         /* the server knows how it is */
	bool good;         /* the last attempt was */
	struct attempt *attempt;
	TAILQ_ENTRY(subject) all;
};

struct subjects {
	unsigned count;
	bool scanned;                                /* at least once */
	bool told;                                   /* that there are too many */
	void (*gone)(void *owner, const char *name); /* is called for a name that is dropped */
	void *owner;
	TAILQ_HEAD(, subject) all;
};

/* Returns whether an authority of the public can give a certificate for a name: it has at least one dot and is neither
 * an address nor a name for private use (RFC 6761, RFC 6762, RFC 8375). */
bool subject_possible(const char *name);

/* Adds the names that are new: directories of the root, and those of options. Drops those that are gone and due; their
 * certificates are taken out of use. Returns 0, or -1 with errno: the root could not be read, and nothing was changed.
 */
int subjects_scan(struct subjects *subjects, const struct acme_options *options, const char *root, int64_t now_s);

/* Chooses when a certificate that is there is renewed: at a random time of the day before a third of its lifetime is
 * left; of a short one, in a twelfth of that. Without one, or with one of another
 * authority, it is due now. */
void subject_schedule(struct subject *subject, const struct acme_options *options, int64_t now_s);

/* Goes on where the last process has ended: a new start is no reason to ask an authority sooner. */
void subject_recall(struct subject *subject, const char *directory);

/* Returns the last moment, since the epoch, at which a certificate should be renewed: when a third of its lifetime is
 * left. */
int64_t subject_renewal_s(const struct store_dates *dates);

/* Puts the next attempt off after a failure. */
void subject_put_off(struct subject *subject, int64_t now_s);

/* Makes those that have failed due now. */
void subjects_hurry(struct subjects *subjects, int64_t now_s);

/* Returns whether the next attempt may be made. A pause that is longer than any was begun while the clock was ahead,
 * and is over. */
bool subject_is_due(const struct subject *subject, int64_t now_s);

/* Returns one that is due, of those with the fewest failures; NULL: none. */
struct subject *subjects_due(const struct subjects *subjects, int64_t now_s);

#endif
