/* tally.c - see tally.h. */
#include "bench/crowd/tally.h"

#include <string.h>

const char *const outcome_name[OUTCOMES] = {"answered", "refused", "cut", "late", "failed"};

void tally_add(struct tally *sum, const struct tally *from) {
	sum->arrived += from->arrived;
	sum->pages += from->pages;
	for (int i = 0; i < OUTCOMES; i++) sum->outcome[i] += from->outcome[i];
	sum->reopened += from->reopened;
	sum->expelled += from->expelled;
	sum->unmade += from->unmade;
	sum->open += from->open;
	histogram_add(&sum->answered, &from->answered);
	histogram_add(&sum->lateness, &from->lateness);
	if (!*sum->failed) memcpy(sum->failed, from->failed, sizeof sum->failed);
	if (!*sum->limit) memcpy(sum->limit, from->limit, sizeof sum->limit);
}

void tally_reset(struct tally *t) {
	histogram_reset(&t->answered);
	histogram_reset(&t->lateness);
	t->arrived = t->pages = t->reopened = t->expelled = t->unmade = 0;
	memset(t->outcome, 0, sizeof t->outcome);
	t->open = 0;
	*t->failed = *t->limit = '\0';
}
