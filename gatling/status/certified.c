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

void certified_free(struct certified_list *list) {
	if (!list) return;
	while (list->count) free(list->at[--list->count]);
	pthread_mutex_destroy(&list->mutex);
	free(list);
}

/* Returns a copy, or NULL without memory. */
static struct certified *copy_of(const char *name, const struct certified *what, const char *result) {
	const size_t size = strlen(name) + 1, length = strnlen(result, CERTIFIED_RESULT_MAX);
	struct certified *c = malloc(sizeof *c + size + length + 1);
	if (!c) return NULL;
	*c = (struct certified){.until_s = what->until_s, .good = what->good, .result = c->name + size};
	memcpy(c->name, name, size);
	memcpy(c->name + size, result, length);
	c->name[size + length] = '\0';
	return c;
}

void certified_set(struct certified_list *list, const char *name, const struct certified *what, const char *result) {
	struct certified *c = result ? copy_of(name, what, result) : NULL;
	int order = -1;
	if (result && !c) return;
	pthread_mutex_lock(&list->mutex);
	struct certified **place = list->at, **end = list->at + list->count;
	while (place < end && (order = strcmp((*place)->name, name)) < 0) place++;
	if (place < end && order == 0) {
		free(*place);
		memmove(place, place + 1, (size_t)(--end - place) * sizeof(struct certified *));
	}
	if (c && end < list->at + CERTIFIED_MAX) {
		memmove(place + 1, place, (size_t)(end++ - place) * sizeof(struct certified *));
		*place = c;
		c = NULL;
	}
	list->count = (unsigned)(end - list->at);
	pthread_mutex_unlock(&list->mutex);
	free(c); /* there was no room */
}

void certified_each(struct certified_list *list, void (*each)(void *owner, const struct certified *c), void *owner) {
	pthread_mutex_lock(&list->mutex);
	for (unsigned i = 0; i < list->count; i++) each(owner, list->at[i]);
	pthread_mutex_unlock(&list->mutex);
}
