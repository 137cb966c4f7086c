/* passage_life.c - see passage_state.h: the beginning and the end of a passage. */
#include <errno.h>
#include <stdlib.h>

#include "gatling/base/gzip.h"
#include "gatling/upstream/passage_state.h"
#include "gatling/upstream/upstream_gzip.h"

/* What is still being compressed is content. */
enum passage_state passage_state(const struct passage *p) {
	return p->state == PASSAGE_ENDED && p->gzip ? PASSAGE_CONTENT : p->state;
}

int passage_failure(const struct passage *p) { return p->failure; }
unsigned passage_answered_ms(const struct passage *p) { return p->answered_ms; }

bool passage_format(const struct passage *p, char *out) {
	if (p->link) upstreams_format(p->link, out);
	return p->link;
}

size_t passage_memory(const struct passage *p) {
	return sizeof *p + (p->records ? sizeof *p->records : 0) + (p->gzip ? (size_t)GZIP_WRITER : 0) + p->out.size +
		   p->in.size + (p->lines ? p->head.lines : 0);
}

/* RFC 9110, section 9.2.2. */
static bool is_idempotent(struct slice method) {
	static const struct slice methods[] = {SLICE("GET"), SLICE("HEAD"), SLICE("OPTIONS"), SLICE("PUT"),
										   SLICE("DELETE")};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (slice_equal(method, methods[i])) return true;
	return false;
}

/* Writes what the request begins with to out. Returns its length. */
static size_t write_head(char *out, enum upstream_protocol protocol, const struct upstream_request *r) {
	switch (protocol) {
	case UPSTREAM_HTTP: break;
	case UPSTREAM_FCGI: return upstream_fcgi_head(out, r);
	case UPSTREAM_SCGI: return upstream_scgi_head(out, r);
	}
	return upstream_request_head(out, r);
}

/* Whether the response to a request over that protocol comes as records. NULL: ENOMEM. */
static bool begin_records(struct passage *p, enum upstream_protocol protocol) {
	if (protocol == UPSTREAM_FCGI) p->records = calloc(1, sizeof *p->records);
	return protocol != UPSTREAM_FCGI || p->records;
}

struct passage *passage_new(struct upstreams *u, const struct upstream_target *target, const struct upstream_request *r,
							struct passage_share *share) {
	enum { HEAD_ROOM = (int)UPSTREAM_CGI_MAX > (int)UPSTREAM_REQUEST_MAX ? UPSTREAM_CGI_MAX : UPSTREAM_REQUEST_MAX };
	static _Thread_local char head[HEAD_ROOM];
	const bool http = target->protocol == UPSTREAM_HTTP;
	const struct request *q = r->request;
	struct passage *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->upstreams = u;
	p->target = upstream_target_retain(target);
	p->head_only = q->method == METHOD_HEAD;
	p->share = share;
	p->relay_to = -1;
	p->answered_ms = (uint32_t)io_now(passage_loop(p));

	p->upgrades = http && upstream_upgrades(q);
	p->must_change = q->websocket;
	p->complete = q->framing == BODY_NONE;
	if (target->protocol == UPSTREAM_FCGI && !p->complete) p->out.framing = FRAMED_RECORDS;
	if (http && q->framing == BODY_CHUNKED) p->out.framing = FRAMED_CHUNKS;
	p->holds = target->protocol == UPSTREAM_FCGI && q->framing == BODY_CHUNKED;
	p->continues = !http && !p->complete && request_has(q, FIELD_EXPECT) && q->minor >= 1;
	p->gzips = upstreams_compress(u) && upstream_gzip_wanted(q) && !p->upgrades;
	p->repeatable = p->complete && is_idempotent(q->method_name) && !p->upgrades;
	size_t length = write_head(head, target->protocol, r);
	if (!begin_records(p, target->protocol) || !outgoing_begin(&p->out, (struct slice){.at = head, .length = length})) {
		passage_free(p);
		return NULL;
	}
	passage_use(p, false, 0);
	return p;
}

void passage_on_ready(struct passage *p, void (*ready)(void *), void *owner) {
	p->ready = ready;
	p->owner = owner;
}

void passage_timed_out(struct passage *p) {
	bool client_is_slow = p->starved || (p->in.length && p->state > PASSAGE_WAITS) || p->state == PASSAGE_HEAD ||
						  p->state == PASSAGE_ENDED ||
						  (p->state <= PASSAGE_WAITS && !p->complete && (!passage_to_send(p) || p->holds));
	if (p->state == PASSAGE_CONNECTS) {
		passage_connect_elsewhere(p, ETIMEDOUT);
	} else if (client_is_slow && p->state != PASSAGE_TUNNEL) {
		passage_set_deadline(p); /* which has its own */
		return;
	} else {
		passage_blame(p, 504, "has not gone on for a minute");
	}
	p->ready(p->owner);
}

void passage_free(struct passage *p) {
	if (!p) return;
	const bool whole = p->state == PASSAGE_ENDED && p->complete && !passage_to_send(p) && !p->unwanted &&
					   p->in.at == p->in.length && !p->head.until_close && !p->upgrades;
	const bool kept = whole && p->head.keep_alive && !p->upstream_ended;
	if (p->link && p->records) fcgi_finish(p->records, passage_complain, p);
	/* content of a request may not have arrived, although there is a response */
	const enum link_end end = kept ? LINK_KEPT : whole && !p->held ? LINK_DONE : LINK_BROKEN;
	if (p->link) upstreams_return(p->upstreams, p->link, end);
	outgoing_forget(&p->out);
	passage_free_input(p);
	passage_free_gzip(p);
	upstream_target_release(p->target);
	free(p->records);
	free(p->lines);
	free(p);
}
