/* challenge.c - see challenge.h. */
#include "gatling/site/answer/challenge.h"

#include "gatling/base/slice.h"
#include "gatling/http/path.h"
#include "gatling/site/answer_room.h"

bool challenge_answer(const struct site_context *c, const struct request *q, struct response *r) {
	char *const proof = c->room->proof;
	char decoded[TARGET_MAX];
	struct slice token = {.at = decoded};
	if (q->method != METHOD_GET && q->method != METHOD_HEAD) return false;
	if (path_decode(q->path, decoded, &token.length) || !text_skip(&token, path_acme_challenge)) return false;
	size_t length = challenges_find(c->challenges, token, proof);
	if (!length) return false;
	response_status(r, 200);
	r->lines = SLICE("Cache-Control: no-store\r\n");
	r->page = (struct slice){.at = proof, .length = length};
	r->page_type = "application/octet-stream";
	return true;
}
