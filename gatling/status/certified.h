/* certified.h - the names that get certificates by ACME, with the results of their last attempts, to be shown. Any
 * thread may use them. */
#ifndef GATLING_STATUS_CERTIFIED_H
#define GATLING_STATUS_CERTIFIED_H

#include <stdbool.h>
#include <stdint.h>

enum { CERTIFIED_MAX = 4096, CERTIFIED_RESULT_MAX = 256 /* names; bytes of a result, beyond which it is cut off */ };

struct certified {
	int64_t until_s;    /* when its certificate ceases to be valid, since the epoch; 0: it has none */
	bool good;          /* the last attempt succeeded */
	const char *result; /* of that attempt, in words; behind the name */
	char name[];
};

struct certified_list;

struct certified_list *certified_new(void); /* returns NULL without memory */
void certified_free(struct certified_list *list);

/* Adds a name, or replaces what is known about it. If result is NULL, removes the name. Without memory nothing
 * changes. */
void certified_set(struct certified_list *list, const char *name, const struct certified *what, const char *result);

/* Calls each() for all names, sorted by strcmp(3). */
void certified_each(struct certified_list *list, void (*each)(void *owner, const struct certified *c), void *owner);

#endif
