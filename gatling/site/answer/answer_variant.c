/* answer_variant.c - see decision.h: what a client that asks for it gets in place of a file, or beside it: the
 * difference to a version that it has (RFC 9842), and a digest (RFC 9530). */
#include <openssl/evp.h>

#include "gatling/base/digest.h"
#include "gatling/base/slice.h"
#include "gatling/codec/dcb.h"
#include "gatling/http/precondition.h"
#include "gatling/site/answer/decision.h"

/* --- what a client has --- */

/* Returns whether a client has a resource in a coding that was made from its identity, and sets *held to what it has,
 * or NULL without memory. */
static bool held_in(const struct request *q, const struct resource *r, enum coding coding,
					struct representation **held) {
	const struct representation *identity = r->representation[CODING_IDENTITY];
	struct representation *const f = r->representation[coding];
	const bool accepted = coding == CODING_IDENTITY ? !coding_refuses_identity(q) : coding_accepted(q, coding);
	const bool same = f && precondition_has(q, f->validators.etag);
	const bool coded = coding != CODING_IDENTITY && identity && representation_has_coded(identity, coding, q);
	if (!accepted || !(same || coded)) return false;
	if (same) representation_retain(f);
	*held = same ? f : representation_unsent(identity, coding);
	return true;
}

struct representation *decision_held(const struct request *q, const struct resource *r, bool offered,
									 struct representation *chosen) {
	const struct representation *identity = r->representation[CODING_IDENTITY];
	struct representation *held;
	if (!request_has(q, FIELD_IF_NONE_MATCH)) return NULL;
	if (precondition_has(q, chosen->validators.etag)) {
		representation_retain(chosen);
		return chosen;
	}
	for (int i = CODINGS - 1; i >= 0; i--)
		if (held_in(q, r, (enum coding)i, &held)) return held;
	return offered && identity ? representation_of_difference(identity, q) : NULL;
}

/* --- differences --- */

/* Reads the digest in Available-Dictionary (RFC 9842, section 3.1), between colons in base64. Returns false if it is
 * none. */
static bool read_digest(const struct request *q, unsigned char *digest) {
	enum { BASE64_LENGTH = (DIGEST_LENGTH + 2) / 3 * 4 };
	unsigned char octets[BASE64_LENGTH];
	const struct slice value = request_field(q, FIELD_AVAILABLE_DICTIONARY);
	if (request_repeats(q, FIELD_AVAILABLE_DICTIONARY)) return false;
	if (value.length != BASE64_LENGTH + 2 || value.at[0] != ':' || value.at[value.length - 1] != ':') return false;
	if (EVP_DecodeBlock(octets, (const unsigned char *)value.at + 1, BASE64_LENGTH) == -1) return false;
	memcpy(digest, octets, DIGEST_LENGTH);
	return true;
}

bool decision_offers(const struct request *q, const struct resource *resource) {
	return resource->offered && request_of_chromium(q);
}

struct representation *decision_difference(struct decision *d, struct resource *resource, struct representation *file,
										   bool *waits) {
	const struct request *q = d->request;
	const unsigned made = 1U << CODING_DCZ | (dcb_is_built ? 1U << CODING_DCB : 0);
	unsigned char digest[DIGEST_LENGTH];
	struct job *job;
	*waits = false;
	const bool offered = d->response->offered;
	if (!(resource->versioned || offered) || d->guarded || d->lookup.error) return file;
	cache_register(d->context->cache, resource);
	if (!request_has(q, FIELD_AVAILABLE_DICTIONARY) || request_has(q, FIELD_RANGE)) return file;
	if (request_has(q, FIELD_IF_MATCH)) return file; /* it is about the file */
	const unsigned codings = coding_differences(q, made, file->coding);
	if (!codings || !read_digest(q, digest)) return file;
	/* another site must not learn from its length what it compares (RFC 9842, section 9.3): it does not learn that of
	 * a page to which a user goes */
	if (!request_of_this_origin(q) && !request_navigates(q)) return file;
	struct representation *smaller = cache_delta(d->context->cache, resource, digest, codings, &job);
	*waits = job && d->arrival->may_wait;
	if (*waits) decision_wait(d, job);
	return smaller && smaller->size < file->size ? smaller : file;
}

/* --- integrity --- */

/* Returns whether the client wants the SHA-256 of the representation (RFC 9530, section 4). */
static bool wants_digest(const struct request *q) {
	struct slice list = request_field(q, FIELD_WANT_REPR_DIGEST);
	for (struct slice element; slice_next_element(&list, &element);) {
		const size_t name = slice_until(element, '=');
		if (slice_equal(slice_first(element, name), SLICE("sha-256")))
			return !slice_equal(slice_rest(element, name), SLICE("=0"));
	}
	return false;
}

struct slice decision_digest(struct decision *d, struct resource *resource, struct representation *f, bool *waits) {
	struct slice line = {0};
	*waits = false;
	if (!request_has(d->request, FIELD_WANT_REPR_DIGEST) || !wants_digest(d->request)) return line;
	line = representation_digest(f);
	struct job *job = line.at ? NULL : cache_digest(d->context->cache, resource, f);
	*waits = job && d->arrival->may_wait;
	if (*waits) decision_wait(d, job);
	return line;
}
