/* explain.h - what the words of uacme(1) mean: why a run has failed, and what to do. */
#ifndef GATLING_ACME_EXPLAIN_H
#define GATLING_ACME_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
	OUTCOME_REASON_MAX = 512, /* bytes */
	/* What an authority may ask us to wait: the longest of Let's Encrypt's limits
	 * (https://letsencrypt.org/docs/rate-limits/). */
	EXPLAIN_LIMITED_MAX_S = 7 * 24 * 60 * 60
};

/* What came of a run. */
struct outcome {
	bool good;
	bool no_account;                 /* the authority does not know the account */
	bool limited;                    /* the authority wants fewer requests */
	int64_t limited_until_s;         /* until then, since the epoch; 0: it does not say */
	char reason[OUTCOME_REASON_MAX]; /* why not, and what to do: of printable characters of ASCII */
};

/* Writes to *outcome why a run has failed. text: the end of what uacme -vvv has written, with the answers of the
 * authority, whose directory is at url. */
void explain(const char *text, const char *url, int64_t now_s, struct outcome *outcome);

#endif
