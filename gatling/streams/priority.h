/* priority.h - the priority of a response: the Priority field and the value of PRIORITY_UPDATE (RFC 9218, section 4), a
 * dictionary of structured fields (RFC 8941). Of these only what clients send is understood: no strings, byte sequences
 * and lists, of which no priority is made. */
#ifndef GATLING_STREAMS_PRIORITY_H
#define GATLING_STREAMS_PRIORITY_H

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

#endif
