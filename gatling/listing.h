/* listing.h - a directory as an HTML page. */
#ifndef GATLING_LISTING_H
#define GATLING_LISTING_H

#include "gatling/cache.h"

enum { LISTING_MAX = 10000 }; /* entries shown; the page says when there are more */

/* Lists what would be served of the directory `path` (relative to the cache's root, NUL-terminated, "." for the root
 * itself), folders first, then by name. title is the decoded path that the client asked for. 0 with a malloc'd page in
 * *html and its length; or an errno: ENOENT, ENOTDIR, EACCES (also: not world-readable), ENOMEM, ... */
int listing_make(const struct cache *cache, const char *path, struct slice title, char **html, size_t *length);

#endif
