/* cache_control.h - the default Cache-Control of a file (RFC 9111, section 5.2.2). */
#ifndef GATLING_SITE_CACHE_CACHE_CONTROL_H
#define GATLING_SITE_CACHE_CACHE_CONTROL_H

#include "gatling/base/slice.h"

/* Returns the value for a path of a media type: a file with a hash of its content in the name never changes, and any
 * other is revalidated each time. restricted: it needs a password. is_substitute: the file is sent for another path, as
 * in struct lookup. */
struct slice cache_control_default(struct slice path, const char *type, bool restricted, bool is_substitute);

/* Returns whether a file of that media type is named as build tools name their output: a stem, a separator and a hash
 * of the content, as in index-BxK2a9fQ.css (cache_control.c has the forms). A name that could have a word, a date, a
 * version or a number in the place of the hash does not count: the error would freeze a file for a year, while a hash
 * that is not recognised costs a 304. */
bool cache_control_is_hashed(struct slice path, const char *type);

/* Returns that hash, a part of path, or an absent slice. */
struct slice cache_control_hash(struct slice path, const char *type);

/* Returns whether it is the media type of a page. */
bool cache_control_is_page(const char *type);

/* What some browsers get for other files than those with a hash, see representation->offered. */
extern const struct slice cache_control_offered;

#endif
