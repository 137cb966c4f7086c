/* redirect_target.h - where a rule of _redirects leads: a path ("local") or a URL with http:// or https://, each with a
 * query and a fragment if it likes, and in it ":name" for what the rule has matched. */
#ifndef GATLING_SITE_RULES_REDIRECT_TARGET_H
#define GATLING_SITE_RULES_REDIRECT_TARGET_H

#include "gatling/base/slice.h"

enum { REDIRECT_TARGET_MAX = 8 * 1024 /* bytes when it is filled in */ };

/* NULL, or what is wrong with a target that begins with '/' or a scheme, but for names that nothing stands for. */
const char *target_check(struct slice target);

bool target_is_local(struct slice target);

/* With its port; absent if it is local. */
struct slice target_authority(struct slice target);

/* Also of one that is filled in; *query has its '?', or is absent. */
struct slice target_path(struct slice target, struct slice *query);

/* The name behind a ':' at the start of the text (not empty), empty if there is none. */
struct slice target_placeholder(struct slice text);

/* Whether both are there, and the same but for the ports that http and https have anyway. */
bool target_same_host(struct slice authority, struct slice other);

struct target_filling {
	struct slice target;
	struct slice query; /* with its '?', or absent: added, if the target has none */
	bool path_only;     /* without query and fragment */
	/* What the name stands for: octets, or what a client has encoded already. */
	bool (*find)(const void *context, struct slice name, struct slice *value, bool *encoded);
	const void *context;
};

/* Fills in a target that target_check() lets pass, into the buffer (REDIRECT_TARGET_MAX bytes). What comes from the
 * client is encoded so that it stays in its part. The URL is visible ASCII; a local one has no second '/' at the start.
 * false: it does not fit, or its host would be none. */
bool target_fill(const struct target_filling *filling, char *buffer, struct slice *url);

#endif
