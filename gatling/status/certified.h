/* certified.h - the names that get certificates by ACME, with what came of it, as they are shown. Any thread may use
 * it.
 */
#ifndef GATLING_STATUS_CERTIFIED_H
#define GATLING_STATUS_CERTIFIED_H

#include <stdbool.h>
#include <stdint.h>

enum { CERTIFIED_MAX = 4096, CERTIFIED_RESULT_MAX = 256 /* names; bytes of a result, the rest is cut off */ };

struct certified {
	int64_t until_s; /* when its certificate ceases to be valid, since the epoch; 0: it has none */
	bool good;       /* the last attempt was */
	char *result;    /* what came of that */
	char name[];
};

struct certified_list;

struct certified_list *certified_new(void); /* NULL: ENOMEM */
void certified_free(struct certified_list *list);

/* Adds a name or replaces what is known of it. result: NULL removes it. Without memory nothing changes. */
void certified_set(struct certified_list *list, const char *name, const struct certified *what, const char *result);

/* Calls each() for all names in the order of letters. */
void certified_each(struct certified_list *list, void (*each)(void *owner, const struct certified *c), void *owner);

#endif
