/* heads.c - see heads.h. */
#include "gatling/exchange/heads.h"

#include <stddef.h>

/* Returns whether a head belongs to one client alone: it has Authorization or Cookie. */
static bool is_personal(const struct request *r) {
	struct slice lines = r->lines, value;
	return request_has(r, FIELD_AUTHORIZATION) || request_next_value(&lines, SLICE("cookie"), &value);
}

/* Makes a slice of the text `from` one of its copy at `to`. Other slices, such as the path "/" that a target lacked,
 * stay. */
static void move(struct slice *s, struct slice from, const char *to) {
	const size_t at = (size_t)((uintptr_t)s->at - (uintptr_t)from.at);
	if (s->at && at <= from.length) s->at = to + at;
}

/* Counts a head that was not found at its place. Returns whether it is to be kept there. */
static bool displaces(struct known_head *k) {
	if (k->hits) {
		k->hits /= 2;
		return false;
	}
	if (k->skipped++ < k->skips) return false;
	k->skipped = 0;
	k->skips = k->found ? k->skips / 2 : k->skips < HEADS_SKIPS ? (uint8_t)(2 * k->skips + 1) : HEADS_SKIPS;
	return true;
}

void heads_keep(struct heads *h, const struct request *r, struct slice head) {
	struct known_head *k = &h->head[h->hash % HEADS];
	const bool again = k->lacked == h->hash;
	k->lacked = h->hash;
	if (!again || head.length > HEADS_OCTETS || r->framing != BODY_NONE || !displaces(k) || is_personal(r)) return;
	k->hash = h->hash;
	k->found = false;
	k->length = head.length;
	memcpy(k->octets, head.at, head.length);
	struct request *q = &k->request;
	memcpy(q, r, offsetof(struct request, field) + r->fields * sizeof *r->field);
	move(&q->method_name, head, k->octets);
	move(&q->line, head, k->octets);
	move(&q->lines, head, k->octets);
	move(&q->path, head, k->octets);
	move(&q->query, head, k->octets);
	move(&q->host, head, k->octets);
	for (unsigned i = 0; i < q->fields; i++) move(&q->field[i].value, head, k->octets);
}
