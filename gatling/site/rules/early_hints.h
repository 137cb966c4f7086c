/* early_hints.h - what a browser can begin to load while an application works on the page (103 Early Hints, RFC 8297).
 */
#ifndef GATLING_SITE_RULES_EARLY_HINTS_H
#define GATLING_SITE_RULES_EARLY_HINTS_H

#include "gatling/site/rules/header_rules.h"

enum { EARLY_HINTS_MAX = 4096 }; /* bytes of their lines; further ones are left out */

/* Writes the owner's Link fields of which a browser makes use at once, those with rel=preload, modulepreload or
 * preconnect, as lines to out (EARLY_HINTS_MAX bytes). Returns how many bytes that are. set may be NULL. */
size_t early_hints(const struct header_set *set, char *out);

#endif
