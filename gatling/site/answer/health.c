/* health.c - see health.h. */
#include "gatling/site/answer/health.h"

#include "gatling/http/path.h"

bool health_answer(const struct site_context *c, const struct request *q, struct response *r) {
	char path[TARGET_MAX];
	size_t length;
	if (q->method != METHOD_GET && q->method != METHOD_HEAD) return false;
	const struct slice asked = slice_of(c->options->health + 1); /* without its slash, as decoded paths are */
	if (path_decode(q->path, path, &length) || !slice_equal((struct slice){.at = path, .length = length}, asked))
		return false;
	response_status(r, c->leaving || c->closed ? 503 : 200);
	r->lines = SLICE("Cache-Control: no-store\r\n");
	return true;
}
