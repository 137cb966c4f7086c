/* answer_coding.c - see decision.h: in which coding a file is sent. */
#include "gatling/site/answer/decision.h"

int decision_best_of(const struct request *q, const struct resource *r, unsigned set) {
	/* what is not there yet is expected to be smaller than what is, and identity to be the largest */
	uint64_t size[CODINGS];
	if (set == 1U << CODING_IDENTITY) return CODING_IDENTITY;
	for (int i = 0; i < CODINGS; i++)
		size[i] = r->representation[i] ? r->representation[i]->size : i == CODING_IDENTITY ? UINT64_MAX : 0;
	return coding_choose_smallest(q, set, size);
}

int decision_best_coding(const struct request *q, struct cache *cache, struct resource *r, int64_t now_ms) {
	const int best = decision_best_of(q, r, r->available | r->producible);
	if (best == -1 || r->available >> best & 1 || !(1U << best & CODINGS_LATER)) return best;
	cache_improve(cache, r, (enum coding)best, now_ms);
	return decision_best_of(q, r, r->available | (r->producible & ~(unsigned)CODINGS_LATER));
}

int decision_coding_at_once(const struct request *q, struct cache *cache, struct resource *r, int64_t now_ms) {
	const int best = decision_best_coding(q, cache, r, now_ms);
	if (best == -1 || r->available >> best & 1) return best;
	if (best == CODING_GZIP) (void)cache_convert(cache, r, CODING_GZIP);
	return decision_best_of(q, r, r->available);
}
