/* priority.h - the priority of a response: the Priority field and the value of PRIORITY_UPDATE (RFC 9218, section 4), a
 * dictionary of structured fields (RFC 8941). Of these only what clients send is understood: no strings, byte sequences
 * and lists, of which no priority is made. */
#ifndef GATLING_STREAMS_PRIORITY_H
#define GATLING_STREAMS_PRIORITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gatling/base/slice.h"

struct priority {
	uint8_t urgency; /* 0 comes first, 7 last */
	bool incremental;
};
#define PRIORITY_DEFAULT ((struct priority){.urgency = 3, .incremental = false})

/* Sets the members of *priority that value has: u=0 to u=7, i, i=?0 and i=?1. Other members are ignored. A value that
 * is malformed, or has anything else, changes nothing. */
void priority_parse(struct slice value, struct priority *priority);

/* The priorities of streams that the client has not opened yet (RFC 9218, section 7): a pointer, NULL while there are
 * none, which the owner frees with free(). */
struct unopened_priorities;
size_t unopened_memory(const struct unopened_priorities *unopened);

/* Keeps the priority of a stream, in place of the one that it had. Returns false if there are `most` others: such
 * streams count towards the limit of open ones. Without memory it is lost, as it is only a hint. */
bool unopened_keep(struct unopened_priorities **unopened, uint64_t id, struct priority priority, unsigned most);

/* Sets *priority to that of a stream that is opened now, if there is one. Forgets it, and those of streams with lower
 * IDs, which are closed by now. */
void unopened_take(struct unopened_priorities **unopened, uint64_t id, struct priority *priority);

#endif
