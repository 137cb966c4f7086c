/* explain.h - explains, by the output of uacme(1), why a run has failed, and what to do. */
#ifndef GATLING_ACME_EXPLAIN_H
#define GATLING_ACME_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
	OUTCOME_REASON_MAX = 512, /* bytes */
	/* Limit of the wait that an authority can demand: the longest of Let's Encrypt's limits
	 * (https://letsencrypt.org/docs/rate-limits/). */
	EXPLAIN_LIMITED_MAX_S = 7 * 24 * 60 * 60
};

/* The result of a run. */
struct outcome {
	bool good;
	bool no_account;                 /* the authority does not know the account */
	bool limited;                    /* a rate limit of the authority was reached */
	int64_t limited_until_s;         /* until when, since the epoch; 0: it does not say */
	char reason[OUTCOME_REASON_MAX]; /* why it failed, and what to do; printable ASCII */
};

/* Fills in *outcome for a run that has failed. text: the end of the output of uacme -vvv, which contains the answers of
 * the authority with its directory at url. */
void explain(const char *text, const char *url, int64_t now_s, struct outcome *outcome);

#endif
