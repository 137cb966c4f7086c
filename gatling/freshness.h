/* freshness.h - what Cache-Control says of a file if its owner says nothing (RFC 9111, section 5.2.2). */
#ifndef GATLING_FRESHNESS_H
#define GATLING_FRESHNESS_H

#include "gatling/slice.h"

/* The value for a path of that media type: pages are asked for again each time; what carries a hash of its content in
 * its name never changes; all else is good for ten minutes. guarded: only who has a password gets it. */
struct slice freshness(struct slice path, const char *type, bool guarded);

/* Whether the name of a file carries a hash of its content, as bundlers write it: app.3f2a9c1b.js, index-BxK2a9fQ.css.
 * What might as well be a word, a date or a version is none: to take it for one would freeze the file for a year. */
bool freshness_hashed(struct slice path);

#endif
