/* coding.c - see coding.h. */
#include "gatling/http/coding.h"

#include "gatling/base/slice.h"
#include "gatling/http/accept.h"

/* WEIGHT_UNMENTIONED: acceptable without being mentioned, but less preferred than any coding that is. It applies to
 * identity, and if there is no Accept-Encoding to the others. */
enum { WEIGHT_UNMENTIONED = 1 };

const struct slice coding_suffix[CODINGS] = {
	[CODING_IDENTITY] = SLICE(""),
	[CODING_GZIP] = SLICE(".gz"),
	[CODING_ZSTD] = SLICE(".zst"),
	[CODING_BR] = SLICE(".br"),
};

const struct slice coding_name[CODINGS_NAMED] = {
	[CODING_IDENTITY] = SLICE("identity"), [CODING_GZIP] = SLICE("gzip"),
	[CODING_ZSTD] = SLICE("zstd"),         [CODING_BR] = SLICE("br"),
	[CODING_DCZ] = SLICE("dcz"),           [CODING_DCB] = SLICE("dcb"),
};

struct slice coding_original(struct slice name) {
	const char last = name.length ? name.at[name.length - 1] : '\0';
	if (last != 'z' && last != 't' && last != 'r') return name; /* the usual case */
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++)
		if (slice_ends(name, coding_suffix[i])) return slice_first(name, name.length - coding_suffix[i].length);
	return name;
}

/* Returns the coding of that name, or -1 if it is unknown. */
static int coding_of(struct slice name) {
	for (int i = 0; i < CODINGS_NAMED; i++)
		if (slice_equal_nocase(name, coding_name[i])) return i;
	return slice_equal_nocase(name, SLICE("x-gzip")) ? CODING_GZIP : -1; /* section 8.4.1.3 */
}

/* The weights (qvalues) of the client in thousandths; 0: not acceptable. */
struct coding_weights {
	unsigned of[CODINGS_NAMED];
	unsigned named; /* those that are mentioned: a set of 1 << coding */
};

/* Returns the weights in the Accept-Encoding field. */
static struct coding_weights weights_of(const struct request *r) {
	bool has = request_has(r, FIELD_ACCEPT_ENCODING);
	struct coding_weights weights = {.named = 0};
	/* weights of codings that are not mentioned; without the field, every coding is acceptable */
	unsigned identity = has ? WEIGHT_UNMENTIONED : ACCEPT_WEIGHT_MAX, rest = has ? 0 : WEIGHT_UNMENTIONED;
	for (unsigned i = 0; has && i < r->fields; i++) {
		if (r->field[i].name != FIELD_ACCEPT_ENCODING) continue;
		struct slice list = r->field[i].value;
		for (struct slice element; slice_next_element(&list, &element);) {
			bool parameters;
			const unsigned weight = accept_take_weight(&element, &parameters);
			int coding = coding_of(element);
			if (coding != -1) {
				weights.of[coding] = weight;
				weights.named |= 1U << coding;
			} else if (slice_equal(element, SLICE("*"))) {
				identity = rest = weight;
			}
		}
	}
	for (int i = 0; i < CODINGS; i++) /* "*" is not enough for a difference */
		if (!(weights.named >> i & 1)) weights.of[i] = i == CODING_IDENTITY ? identity : rest;
	return weights;
}

bool coding_refuses_identity(const struct request *r) { return !weights_of(r).of[CODING_IDENTITY]; }

int coding_choose_smallest(const struct request *r, unsigned available, const uint64_t *size) {
	const struct coding_weights weights = weights_of(r);
	const unsigned *const weight = weights.of;
	int best = -1;
	for (int i = CODINGS - 1; i >= 0; i--) {
		if (!(available >> i & 1) || !weight[i]) continue;
		if (best == -1 || weight[i] > weight[best] || (weight[i] == weight[best] && size[i] < size[best])) best = i;
	}
	return best == -1 && available & 1U << CODING_IDENTITY ? CODING_IDENTITY : best;
}

bool coding_accepted(const struct request *r, enum coding coding) {
	const struct coding_weights weights = weights_of(r);
	return weights.named >> coding & 1 && weights.of[coding];
}

unsigned coding_differences(const struct request *r, unsigned made, enum coding than) {
	const struct coding_weights weights = weights_of(r);
	unsigned best = weights.of[than], set = 0;
	for (int i = CODINGS; i < CODINGS_NAMED; i++) {
		const unsigned weight = made >> i & 1 ? weights.of[i] : 0;
		if (!weight || weight < best) continue;
		if (weight > best) set = 0;
		best = weight;
		set |= 1U << i;
	}
	return set;
}

int coding_choose(const struct request *r, unsigned available) {
	static const uint64_t alike[CODINGS];
	return coding_choose_smallest(r, available, alike);
}
