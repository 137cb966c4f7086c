/* backlog.c - see backlog.h. */
#include "bench/httpbench/load/backlog.h"

#include <stdlib.h>

int backlog_init(struct backlog *b) {
	*b = (struct backlog){.entry = calloc(BACKLOG_MAX, sizeof *b->entry)};
	return b->entry ? 0 : -1;
}

void backlog_free(struct backlog *b) { free(b->entry); }

bool backlog_add(struct backlog *b, int64_t due_ns, bool again) {
	if (b->count == BACKLOG_MAX) return false;
	b->entry[(b->first + b->count++) % BACKLOG_MAX] = (struct backlog_entry){due_ns, again};
	return true;
}

const struct backlog_entry *backlog_first(const struct backlog *b) { return &b->entry[b->first]; }

void backlog_remove(struct backlog *b) {
	b->first = (b->first + 1) % BACKLOG_MAX;
	b->count--;
}
