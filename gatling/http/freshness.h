/* freshness.h - what Cache-Control says of a file if its owner says nothing (RFC 9111, section 5.2.2). */
#ifndef GATLING_HTTP_FRESHNESS_H
#define GATLING_HTTP_FRESHNESS_H

#include "gatling/base/slice.h"

/* The value for a path of that media type: pages are asked for again each time; what carries a hash of its content in
 * its name never changes; all else is good for ten minutes. guarded: only who has a password gets it. stands_in: it is
 * sent for another path, at which there is nothing now. */
struct slice freshness(struct slice path, const char *type, bool restricted, bool stands_in);

/* Whether a file of that media type is named as build tools name what they write: a stem, a separator and a hash of the
 * content, as in index-BxK2a9fQ.css (freshness.c has the forms). What might as well be a word, a date, a version or the
 * number of something is none: to take it for one would freeze the file for a year. */
bool freshness_hashed(struct slice path, const char *type);

/* Whether that is the media type of a page. */
bool freshness_page(const char *type);

#endif
