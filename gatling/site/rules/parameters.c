/* parameters.c - see parameters.h. */
#include "gatling/site/rules/parameters.h"

#include <openssl/rand.h>
#include <pthread.h>

#include "gatling/http/path.h"
#include "gatling/site/rules/redirect_target.h"
#include "gatling/site/rules/rules.h"

static uint64_t seed; /* keeps clients from choosing parameters with the hash of a rule's parameter */
static pthread_once_t seeded = PTHREAD_ONCE_INIT;

static void make_seed(void) {
	if (RAND_bytes((unsigned char *)&seed, sizeof seed) != 1) seed = 1;
}

/* Takes an octet off the front, decoded as in a form (application/x-www-form-urlencoded). */
static unsigned char take_octet(struct slice *s) {
	const bool encoded = path_is_encoded(*s);
	const unsigned char octet = encoded ? path_decode_byte(*s) : s->at[0] == '+' ? ' ' : (unsigned char)s->at[0];
	slice_drop(s, encoded ? 3 : 1);
	return octet;
}

/* Returns whether an application would take both for the same name or value. */
static bool means_same(struct slice a, struct slice b) {
	while (a.length && b.length)
		if (take_octet(&a) != take_octet(&b)) return false;
	return a.length == b.length;
}

/* Adds an octet as FNV-1a does (http://www.isthe.com/chongo/tech/comp/fnv/). */
static uint64_t add_octet(uint64_t h, unsigned octet) { return (h ^ octet) * UINT64_C(1099511628211); }

static uint64_t hash_decoded(uint64_t h, struct slice s) {
	while (s.length) h = add_octet(h, take_octet(&s));
	return h;
}

/* Returns the hash of a name with its value. h is the hash of the name. */
static uint64_t hash_value(uint64_t h, struct slice value) { return hash_decoded(add_octet(h, 256), value); }

uint64_t parameter_hash(const struct parameter *p) {
	pthread_once(&seeded, make_seed);
	const uint64_t name = hash_decoded(seed, p->name);
	return p->captures ? name : hash_value(name, p->value);
}

/* Returns the index of the bit of a hash. */
static size_t bit_of(uint64_t h) { return ((h ^ h >> 32) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PARAMETER_BITS_LOG); }

static void set_bit(struct parameter_notes *notes, uint64_t h) {
	notes->bits[bit_of(h) / 64] |= UINT64_C(1) << bit_of(h) % 64;
}

/* Takes the next parameter off the front of a query, with the '?' or '&' before it. Returns false at the end. */
static bool next_parameter(struct slice *query, struct slice *name, struct slice *value) {
	if (query->length < 2) return false;
	slice_drop(query, 1);
	*value = slice_first(*query, slice_until(*query, '&'));
	slice_drop(query, value->length);
	*name = rules_take_until(value, '=');
	return true;
}

/* Returns whether a value can be part of a path. It may be encoded a second time, since what is decoded
 * once is a path, too. One that is too long is left to redirect_target_fill(). */
static bool suits_path(struct slice value) {
	char decoded[REDIRECT_TARGET_MAX];
	struct slice text = {.at = decoded};
	if (value.length > REDIRECT_TARGET_MAX) return true;
	while (value.length) decoded[text.length++] = (char)take_octet(&value);
	return !path_has_dots(text) && !memchr(text.at, '\0', text.length) && path_allows(text);
}

static bool suits(struct slice value, const struct parameter *p) {
	if (!p->captures) return means_same(value, p->value);
	return !p->in_path || suits_path(value);
}

bool parameter_find(struct slice query, const struct parameter *p, struct slice *value) {
	for (struct slice name; next_parameter(&query, &name, value);)
		if (means_same(name, p->name) && suits(*value, p)) return true;
	return false;
}

void parameters_note(struct slice query, struct parameter_notes *notes) {
	memset(notes, 0, sizeof *notes);
	for (struct slice name, value; next_parameter(&query, &name, &value);) {
		const uint64_t h = hash_decoded(seed, name);
		set_bit(notes, h);
		set_bit(notes, hash_value(h, value));
	}
}

bool parameters_may_have(const struct parameter_notes *notes, const struct parameter *p) {
	return notes->bits[bit_of(p->hash) / 64] >> bit_of(p->hash) % 64 & 1;
}
