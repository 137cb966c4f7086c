/* answer_room.h - where a worker's answers are written that a response refers to. */
#ifndef GATLING_SITE_ANSWER_ROOM_H
#define GATLING_SITE_ANSWER_ROOM_H

#include "gatling/acme/challenges.h"
#include "gatling/site/access/basic_auth.h"
#include "gatling/site/response.h"
#include "gatling/site/rules/early_hints.h"
#include "gatling/site/rules/header_rules.h"
#include "gatling/site/rules/limit_rules.h"
#include "gatling/upstream/upstream_head.h"

enum { VARY_MAX = 64 }; /* bytes of the Vary line that rules with conditions add */

/* The next answer() overwrites it. */
struct answer_room {
	char location[LOCATION_MAX];
	char lines[AUTH_LINES_MAX + VARY_MAX + HEADER_ADDED_MAX];
	char hints[EARLY_HINTS_MAX];
	struct header_filled filled;
	struct path_limits limits;
	char script_root[SCRIPT_ROOT_MAX], script_path[1 + TARGET_MAX], script_target[1 + TARGET_MAX + 1];
	char proof[CHALLENGE_PROOF_MAX];
};

#endif
