/* proxied_life.c - see proxied_state.h: the beginning and the end of a proxied request. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/upstream/proxied_state.h"
#include "gatling/upstream/upstream_coding.h"

int proxied_failure(const struct proxied *p) { return p->failure; }
unsigned proxied_stalls(const struct proxied *p) { return p->stalls; }
unsigned proxied_answered_ms(const struct proxied *p) { return p->answered_ms; }

const char *proxied_address(const struct proxied *p) { return p->link ? upstreams_address(p->link) : p->to; }

size_t proxied_memory(const struct proxied *p) {
	return sizeof *p + (p->records ? sizeof *p->records : 0) + (p->writer ? p->writer->codec->memory : 0) +
		   p->out.size + p->in.size + (p->lines ? p->head.lines : 0);
}

/* Returns whether a method is idempotent (RFC 9110, section 9.2.2). */
static bool is_idempotent(const struct request *q) {
	return q->method <= METHOD_OPTIONS || slice_equal(q->method_name, SLICE("PUT")) ||
		   slice_equal(q->method_name, SLICE("DELETE"));
}

/* Writes the head of the request to out. Returns its length. An upstream of HTTP/1.1 gets a Host in any case (RFC 9112,
 * section 3.2): its own, if the client has sent none, or it is one of https, which has to be that of its certificate.
 */
static size_t write_head(char *out, const struct upstream_target *target, const struct upstream_request *r,
						 bool upgrades) {
	switch (target->protocol) {
	case UPSTREAM_HTTP: break;
	case UPSTREAM_FCGI: return upstream_fcgi_head(out, r);
	case UPSTREAM_SCGI: return upstream_scgi_head(out, r);
	}
	char text[UPSTREAM_TEXT_MAX];
	struct upstream_request named = *r;
	named.host = r->request->host;
	named.upgrades = upgrades;
	if (!named.host.length || target->tls)
		named.host = (struct slice){.at = text, .length = upstream_format_authority(text, target, &target->at[0])};
	return upstream_request_head(out, &named);
}

struct proxied *proxied_new(struct upstreams *u, const struct upstream_target *target, const struct upstream_request *r,
							struct proxied_share *share, void (*ready)(void *), void *owner) {
	enum { HEAD_ROOM = (int)UPSTREAM_CGI_MAX > (int)UPSTREAM_REQUEST_MAX ? UPSTREAM_CGI_MAX : UPSTREAM_REQUEST_MAX };
	char *const head = WORKSPACE(HEAD_ROOM);
	const bool http = target->protocol == UPSTREAM_HTTP, fcgi = target->protocol == UPSTREAM_FCGI;
	const struct request *q = r->request;
	struct proxied *p;
	const struct upstreams_options *const o = upstreams_options(u);
	const bool complete = q->framing == BODY_NONE, upgrades = http && upstream_upgrades(q);
	const size_t records = fcgi ? sizeof *p->records : 0;
	p = malloc(sizeof *p + records + r->site.length);
	if (!p) return NULL;
	char *const site = (char *)(p + 1) + records;
	*p = (struct proxied){
		.upstreams = u,
		.loop = o->loop,
		.target = upstream_target_retain(target),
		.records = fcgi ? (struct fcgi_records *)(p + 1) : NULL,
		.ready = ready,
		.owner = owner,
		.share = share,
		.splice_to = -1,
		.asker = {.client = *r->arrival->client,
				  .site = {.at = site, .length = r->site.length},
				  .site_hash = slice_hash(0, r->site)},
		.limits = *r->limits,
		.answered_ms = (uint32_t)io_now(o->loop),
		.head_only = q->method == METHOD_HEAD,
		.upgrades = upgrades,
		.must_change = q->websocket,
		.complete = complete,
		.holds = fcgi && q->framing == BODY_CHUNKED,
		.content_first = r->content_first,
		.expects = q->expect_continue,
		.continues = !http && q->expect_continue,
		.compresses = o->compresses,
		.coding = o->compresses && !upgrades ? upstream_coding_wanted(q) : CODING_IDENTITY,
		.repeatable = complete && is_idempotent(q) && !upgrades,
		.out.framing = fcgi && !complete                    ? FRAMED_RECORDS
					   : http && q->framing == BODY_CHUNKED ? FRAMED_CHUNKS
															: FRAMED_NOT,
	};
	if (fcgi) *p->records = (struct fcgi_records){0};
	if (r->site.length) memcpy(site, r->site.at, r->site.length);
	if (!outgoing_begin(&p->out, (struct slice){.at = head, .length = write_head(head, target, r, upgrades)})) {
		proxied_free(p);
		return NULL;
	}
	if (!p->content_first) proxied_use(p, false, 0);
	return p;
}

/* Returns whether the upstream has done all that it can for now. */
static bool waits_for_client(const struct proxied *p) {
	if (p->state == PROXIED_TUNNEL) return false;
	if (p->starved || (p->in.length && p->state > PROXIED_WAITS) || p->state == PROXIED_HEAD ||
		p->state == PROXIED_ENDED)
		return true;
	return p->state <= PROXIED_WAITS && !p->complete && !p->expects && (!outgoing_unsent(&p->out) || p->holds);
}

/* Handles that neither side has acted for the time that it has, or that this time is not over yet. */
void proxied_timed_out(struct proxied *p) {
	const char *limit = NULL;
	char what[80];
	const bool client = p->state != PROXIED_CONNECTS && waits_for_client(p);
	const int64_t ms = client ? PROXIED_STALL_MS : proxied_patience_ms(p, &limit);
	const int64_t now_ms = io_now(p->loop), left = p->waits_from_ms + ms - now_ms;
	p->timer_ms = 0;
	if (left > 0) {
		proxied_set_timer(p, now_ms, left);
		return;
	}
	if (p->state == PROXIED_CONNECTS) {
		proxied_connect_elsewhere(p, ETIMEDOUT);
	} else if (client) {
		p->stalls++;
		proxied_set_deadline(p);
	} else {
		snprintf(what, sizeof what, "has not gone on for %d s (limit %s)", (int)(ms / 1000), limit);
		proxied_blame(p, 504, what);
	}
	p->ready(p->owner);
}

void proxied_free(struct proxied *p) {
	if (!p) return;
	const bool whole = p->state == PROXIED_ENDED && p->complete && !outgoing_unsent(&p->out) && !p->unwanted &&
					   p->in.at == p->in.length && !p->head.until_close && !p->upgrades;
	const bool kept = whole && p->head.keep_alive && !p->upstream_ended;
	if (p->link && p->records) fcgi_finish(p->records, proxied_complain, p);
	/* content of the request may not have arrived, even if there is a response */
	const enum link_end end = kept ? LINK_KEPT : whole && !p->held ? LINK_DONE : LINK_BROKEN;
	if (p->link) upstreams_return(p->upstreams, p->link, end);
	outgoing_forget(&p->out);
	proxied_drop_response(p);
	upstream_target_release(p->target);
	free(p->lines);
	free(p);
}
