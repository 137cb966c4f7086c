/* passed_request.c - see passed_request.h. */
#include "gatling/exchange/passed_request.h"

#include <stdlib.h>

#include "gatling/base/text.h"

bool passed_request_begin(struct passed_request *p, struct upstreams *upstreams, const struct arrived_request *arrived,
						  const struct response *r) {
	const struct upstream_request request = {.request = arrived->request,
											 .target = r->location,
											 .host = arrived->request->host,
											 .client = arrived->client,
											 .forwarding = arrived->forwarding,
											 .proxy = arrived->proxy,
											 .port = arrived->port,
											 .secure = arrived->secure,
											 .content_first = arrived->content_first,
											 .user = r->user,
											 .script = &r->script,
											 .site = r->site};
	char *user = r->user.at ? malloc(r->user.length + 1) : NULL;
	bool kept = user || !r->user.at;
	*p = (struct passed_request){.kept = arrived->kept, .user = {.at = user, .length = r->user.length}};
	if (kept && !p->kept) p->kept = kept_request_new(arrived->request, NULL, arrived->started_ns);
	if (kept && p->kept) p->passage = passage_new(upstreams, r->upstream, &request, arrived->share);
	if (p->passage) {
		if (user) (void)text_copy(user, r->user);
		return true;
	}
	if (!arrived->kept) kept_request_free(p->kept);
	free(user);
	return false;
}

void passed_request_slim(struct passed_request *p) {
	p->logged = request_keep_logged(p->kept->request, &p->logged_size);
	if (!p->logged) return;
	p->started_ns = p->kept->started_ns;
	kept_request_free(p->kept);
	p->kept = NULL;
}

size_t passed_request_memory(const struct passed_request *p) {
	return (p->kept ? p->kept->memory : p->logged_size) + p->user.length + passage_memory(p->passage);
}

static void log_response(const struct passed_request *p, struct batch_pool *pool, const struct peer *client) {
	char text[UPSTREAM_TEXT_MAX] = "";
	struct access_upstream upstream = {.status = p->status, .ns = (int64_t)passage_answered_ms(p->passage) * 1000000};
	if (passage_format(p->passage, text)) upstream.address = slice_of(text);
	batch_pool_log(pool, p->kept ? p->kept->started_ns : p->started_ns, client, passed_request_kept(p), p->user,
				   p->status, p->bytes, &upstream);
}

struct kept_request *passed_request_end(struct passed_request *p, struct batch_pool *pool, const struct peer *client,
										enum value protocol) {
	struct kept_request *kept = p->kept;
	if (p->status) {
		count_answer(protocol, p->status);
		log_response(p, pool, client);
		kept_request_free(kept);
		kept = NULL;
	} else {
		char upstream[UPSTREAM_TEXT_MAX] = "";
		(void)passage_format(p->passage, upstream);
		kept_request_fail(kept, passage_failure(p->passage), upstream);
	}
	passage_free(p->passage);
	free(p->logged);
	free((char *)(uintptr_t)p->user.at);
	return kept;
}
