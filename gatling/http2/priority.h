/* priority.h - the priority of a response: the Priority field and the value of PRIORITY_UPDATE (RFC 9218, section 4), a
 * dictionary of structured fields (RFC 8941). */
#ifndef GATLING_HTTP2_PRIORITY_H
#define GATLING_HTTP2_PRIORITY_H

#include <stdint.h>

#include "gatling/base/slice.h"

struct priority {
	uint8_t urgency; /* 0 comes first, 7 last */
	bool incremental;
};
#define PRIORITY_DEFAULT ((struct priority){.urgency = 3, .incremental = false})

/* Sets the members of *priority that value has. A malformed value changes nothing; members that are unknown, out of
 * range or of another type are ignored. */
void priority_parse(struct slice value, struct priority *priority);

#endif
