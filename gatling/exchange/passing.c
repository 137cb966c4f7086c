/* passing.c - see passing.h. */
#include "gatling/exchange/passing.h"

#include <stdlib.h>

#include "gatling/base/text.h"

bool passing_begin(struct passing *p, struct upstreams *upstreams, const struct passing_request *asked,
				   const struct response *r) {
	const struct upstream_request request = {.request = asked->request,
											 .target = r->location,
											 .host = asked->request->host,
											 .client = asked->client,
											 .forwarding = asked->forwarding,
											 .proxy = asked->proxy,
											 .port = asked->port,
											 .secure = asked->secure,
											 .user = r->user,
											 .script = &r->script};
	char *user = r->user.at ? malloc(r->user.length + 1) : NULL;
	bool kept = user || !r->user.at;
	*p = (struct passing){.kept = asked->waiting, .user = {.at = user, .length = r->user.length}};
	if (kept && !p->kept) p->kept = waiting_request_new(asked->request, NULL, asked->started_ns);
	if (kept && p->kept) p->passage = passage_new(upstreams, r->upstream, &request, asked->share);
	if (p->passage) {
		if (user) (void)text_copy(user, r->user);
		return true;
	}
	if (!asked->waiting) waiting_request_free(p->kept);
	free(user);
	return false;
}

void passing_slim(struct passing *p) {
	p->logged = request_keep_logged(p->kept->request, &p->logged_size);
	if (!p->logged) return;
	p->started_ns = p->kept->started_ns;
	waiting_request_free(p->kept);
	p->kept = NULL;
}

size_t passing_memory(const struct passing *p) {
	return (p->kept ? p->kept->memory : p->logged_size) + p->user.length + passage_memory(p->passage);
}

static void log_response(const struct passing *p, struct batch_pool *pool, const struct peer *client) {
	char text[UPSTREAM_TEXT_MAX] = "";
	struct access_upstream upstream = {.status = p->status, .ns = (int64_t)passage_answered_ms(p->passage) * 1000000};
	if (passage_format(p->passage, text)) upstream.address = slice_of(text);
	batch_pool_log(pool, p->kept ? p->kept->started_ns : p->started_ns, client, passing_kept(p), p->user, p->status,
				   p->content, &upstream);
}

struct waiting_request *passing_end(struct passing *p, struct batch_pool *pool, const struct peer *client,
									enum value protocol) {
	struct waiting_request *kept = p->kept;
	if (p->status) {
		count_answer(protocol, p->status);
		log_response(p, pool, client);
		waiting_request_free(kept);
		kept = NULL;
	} else {
		char upstream[UPSTREAM_TEXT_MAX] = "";
		(void)passage_format(p->passage, upstream);
		waiting_request_fail(kept, passage_failure(p->passage), upstream);
	}
	passage_free(p->passage);
	free(p->logged);
	free((char *)(uintptr_t)p->user.at);
	return kept;
}
