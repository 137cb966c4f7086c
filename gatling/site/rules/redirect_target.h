/* redirect_target.h - the path or URL that a rule of _redirects leads to. It may have a query and a fragment. A ':'
 * before a name of the rule, the longest that is there, is replaced with what that has matched; any other ':' is
 * itself. */
#ifndef GATLING_SITE_RULES_REDIRECT_TARGET_H
#define GATLING_SITE_RULES_REDIRECT_TARGET_H

#include "gatling/base/slice.h"

enum {
	REDIRECT_TARGET_MAX = 8 * 1024, /* bytes with names replaced */
	REDIRECT_PARAMETERS_MAX = 16    /* of one rule, whose values may be filled in */
};

/* The parts of a target, with or without names replaced. */
struct redirect_target {
	struct slice scheme;    /* with "://" */
	struct slice authority; /* with its port; absent for a path */
	struct slice path;
	struct slice query;    /* with its '?', or absent */
	struct slice fragment; /* without its '#', or absent */
};

/* Returns the parts of a text that begins with '/' or a scheme. */
struct redirect_target redirect_target_split(struct slice text);

/* Returns what is wrong with a text that begins with '/' or a scheme, or NULL. Does not look up its names. */
const char *redirect_target_check(struct slice text);

/* Returns whether both authorities are present and the same, except for a port that is the default of http or https. */
bool redirect_target_same_host(struct slice authority, struct slice other);

struct redirect_filling {
	struct redirect_target target;
	struct slice query; /* of the request, with its '?', or absent: added if the target has none */
	bool path_only;     /* leave out query and fragment */
	bool no_dots;       /* the path may not get a segment of dots: path_has_dots() */
	/* Returns the length of the name with which the text begins, or 0 if that is none, and fills in its value: octets,
	 * or text that a client has encoded already. */
	size_t (*find)(const void *context, struct slice text, struct slice *value, bool *encoded);
	const void *context;
};

/* REDIRECT_MISFIT: it is too long, or has a segment of dots. */
enum redirect_filled { REDIRECT_MISFIT, REDIRECT_BAD_HOST, REDIRECT_FILLED };

/* Writes a target that redirect_target_check() found good to the buffer (REDIRECT_TARGET_MAX bytes), with its names
 * replaced. Values are encoded so that they stay in their part of the URL, and those of a client that are encoded
 * already stay in their segment of the path. The URL is visible ASCII; if it begins with '/', no second one follows. */
enum redirect_filled redirect_target_fill(const struct redirect_filling *filling, char *buffer, struct slice *url);

/* Writes a target that was filled in without a query and fragment, and adds the query of a request (with its '?', or
 * absent), as redirect_target_fill() does. Returns false if it is too long. */
bool redirect_target_join(struct slice filled, struct slice query, char *buffer, struct slice *url);

#endif
