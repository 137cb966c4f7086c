/* turn.c - see streams.h: which stream sends next, and what the connection waits for. */
#include "gatling/streams/streams.h"

/* Returns whether a request that waits, but not for a job, may be answered: it has given that up, or it may hold what
 * it waits for. */
static bool may_be_answered(const struct stream *s) {
	return stream_waits(s) && !stream_waits_for_job(s) && !s->receiving && streams_may_hold(s->streams, s->awaits);
}

/* Returns the most urgent stream whose request may be answered, or NULL. */
static struct stream *next_waiting(const struct streams *t) {
	struct stream *s = t->waiting_size ? t->first : NULL;
	while (s && !may_be_answered(s)) s = s->next;
	return s;
}

void streams_answer_waiting(struct streams *t) {
	struct stream *s;
	while (!t->failed && (s = next_waiting(t))) t->failed |= !stream_answer_again(s);
}

void stream_relay_failed(struct stream *s) {
	struct streams *t = s->streams;
	s->discards |= s->receiving;
	s->receiving = false;
	t->failed |= !stream_answer_again(s);
}

/* Returns since when a request has waited longest for a job, or 0 if none waits. */
static int64_t waiting_since(const struct streams *t) {
	int64_t since = 0;
	for (const struct stream *s = t->waiting_size ? t->first : NULL; s; s = s->next)
		if (stream_waits_for_job(s) && (!since || s->exchange->waits_since_ns < since))
			since = s->exchange->waits_since_ns;
	return since;
}

static bool waits_only_for_upstreams(const struct streams *t) {
	for (const struct stream *s = t->passes ? t->first : NULL; s; s = s->next)
		if (!stream_waits(s) && (!s->exchange || stream_relay_waits_for_client(s))) return false;
	return t->passes;
}

struct waiting streams_wait(const struct streams *t) {
	if (!t->open) return (struct waiting){.what = WAIT_REQUEST};
	const int64_t since_ns = waiting_since(t);
	if (since_ns) return (struct waiting){.what = WAIT_JOB, .since_ns = since_ns};
	if (!waits_only_for_upstreams(t)) return (struct waiting){.what = WAIT_CLIENT_SENDS};
	return (struct waiting){.what = t->tunnels ? WAIT_TUNNEL : WAIT_UPSTREAM};
}

bool streams_take_progress(struct streams *t) {
	const bool progress = t->progress;
	t->progress = false;
	return progress;
}

bool streams_await_upstream(const struct streams *t) {
	const struct stream *s = t->passes ? t->first : NULL;
	while (s && (!stream_is_passed_on(s) || s->batch || s->relayed != RELAY_WAITS)) s = s->next;
	return s;
}

bool stream_can_send(const struct stream *s) {
	const struct streams *t = s->streams;
	const bool passed = stream_is_passed_on(s);
	if (passed && !s->batch) return s->relayed != RELAY_WAITS;
	if ((s->receiving && !passed) || s->ended || stream_waits(s) || s->postponed) return false;
	return s->block_length || (t->protocol->stream_room(s) && t->protocol->takes(t));
}

struct stream *streams_next(const struct streams *t) {
	struct stream *s = t->first;
	while (s && !stream_can_send(s)) s = s->next;
	return s;
}

bool streams_sendable(const struct streams *t) { return !t->failed && (streams_next(t) || next_waiting(t)); }

/* Continues a proxied request if all of the batch has been taken. Returns whether the response is complete. */
static bool is_complete(struct stream *s) {
	if (iob_bytesleft(s->batch->iob)) return false;
	if (!stream_is_passed_on(s)) return true;
	stream_relay_taken(s);
	return s->relayed == RELAY_DONE;
}

void stream_sent(struct stream *s) {
	const bool content = !s->block_length;
	s->block_length = 0;
	s->ended = is_complete(s);
	if (content && s->priority.incremental) stream_set_priority(s, s->priority); /* moves it behind the others */
}

void stream_postpone(struct stream *s) { s->postponed = s->streams->postpones = true; }

void streams_go_on(struct streams *t) {
	for (struct stream *s = t->postpones ? t->first : NULL; s; s = s->next) s->postponed = false;
	t->postpones = false;
}
