/* certified.c - see certified.h. The list is a sorted array. */
#include "gatling/status/certified.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct certified_list {
	pthread_mutex_t mutex;
	struct certified *at[CERTIFIED_MAX];
	unsigned count;
};

struct certified_list *certified_new(void) {
	struct certified_list *list = calloc(1, sizeof *list);
	if (list) pthread_mutex_init(&list->mutex, NULL);
	return list;
}

static void drop(struct certified *c) {
	free(c->result);
	free(c);
}

void certified_free(struct certified_list *list) {
	if (!list) return;
	while (list->count) drop(list->at[--list->count]);
	pthread_mutex_destroy(&list->mutex);
	free(list);
}

/* Returns a copy, or NULL without memory. */
static struct certified *make(const char *name, const struct certified *what, const char *result) {
	const size_t size = strlen(name) + 1;
	struct certified *c = malloc(sizeof *c + size);
	if (!c) return NULL;
	*c = (struct certified){
		.until_s = what->until_s, .good = what->good, .result = strndup(result, CERTIFIED_RESULT_MAX)};
	memcpy(c->name, name, size);
	if (c->result) return c;
	free(c);
	return NULL;
}

/* Returns the index of a name, or the one at which it would be inserted. */
static unsigned find(const struct certified_list *list, const char *name, bool *found) {
	unsigned from = 0, to = list->count;
	while (from < to) {
		unsigned middle = (from + to) / 2;
		if (strcmp(list->at[middle]->name, name) < 0) from = middle + 1;
		else to = middle;
	}
	*found = from < list->count && strcmp(list->at[from]->name, name) == 0;
	return from;
}

void certified_set(struct certified_list *list, const char *name, const struct certified *what, const char *result) {
	struct certified *c = result ? make(name, what, result) : NULL;
	bool found;
	pthread_mutex_lock(&list->mutex);
	unsigned i = find(list, name, &found);
	struct certified **place = &list->at[i];
	if (found && (c || !result)) drop(*place);
	if (found && c) {
		*place = c;
	} else if (found && !result) {
		memmove(place, place + 1, (--list->count - i) * sizeof(struct certified *));
	} else if (c && list->count < CERTIFIED_MAX) {
		memmove(place + 1, place, (list->count++ - i) * sizeof(struct certified *));
		*place = c;
	} else if (c) {
		drop(c);
	}
	pthread_mutex_unlock(&list->mutex);
}

void certified_each(struct certified_list *list, void (*each)(void *owner, const struct certified *c), void *owner) {
	pthread_mutex_lock(&list->mutex);
	for (unsigned i = 0; i < list->count; i++) each(owner, list->at[i]);
	pthread_mutex_unlock(&list->mutex);
}
