/* backlog.h - requests that are due and wait for a connection, first in, first out. */
#ifndef BENCH_BACKLOG_H
#define BENCH_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

enum { BACKLOG_MAX = 1024 * 1024 }; /* requests */

struct backlog_entry {
	int64_t due_ns;
	bool again; /* it already had a connection, which was closed */
};

/* A ring. */
struct backlog {
	struct backlog_entry *entry;
	unsigned first, count;
};

/* Returns 0, or -1 with errno. */
int backlog_init(struct backlog *backlog);
void backlog_free(struct backlog *backlog);

/* Adds a request. Returns false if the backlog is full. */
bool backlog_add(struct backlog *backlog, int64_t due_ns, bool again);

/* Return the first entry, and remove it. The backlog must not be empty. */
const struct backlog_entry *backlog_first(const struct backlog *backlog);
void backlog_remove(struct backlog *backlog);

#endif
