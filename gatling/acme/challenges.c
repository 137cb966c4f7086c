/* challenges.c - see challenges.h. Each place has a counter that is odd while it is written to (a seqlock), so that
 * nobody reads half of it, and nobody waits. */
#include "gatling/acme/challenges.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>

struct challenge {
	atomic_uint version;
	atomic_uchar token_length, token[CHALLENGE_TOKEN_MAX];
	atomic_uchar proof_length, proof[CHALLENGE_PROOF_MAX]; /* of a free place the length is 0 */
};

struct challenges {
	struct challenge at[CHALLENGES_MAX];
};

struct challenges *challenges_new(void) {
	struct challenges *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return c == MAP_FAILED ? NULL : c;
}

void challenges_protect(struct challenges *c) { (void)mprotect(c, sizeof *c, PROT_READ); }

void challenges_free(struct challenges *c) {
	if (c) (void)munmap(c, sizeof *c);
}

/* Returns whether it is made of base64url (RFC 4648, section 5) and dots. */
static bool is_plain(struct slice text) {
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	for (size_t i = 0; i < text.length; i++)
		if (!memchr(allowed, text.at[i], sizeof allowed - 1)) return false;
	return text.length > 0;
}

static void write_bytes(atomic_uchar *length, atomic_uchar *to, struct slice text) {
	atomic_store(length, (unsigned char)text.length);
	for (size_t i = 0; i < text.length; i++) atomic_store(&to[i], (unsigned char)text.at[i]);
}

static void write_place(struct challenge *c, struct slice token, struct slice proof) {
	atomic_fetch_add(&c->version, 1);
	write_bytes(&c->token_length, c->token, token);
	write_bytes(&c->proof_length, c->proof, proof);
	atomic_fetch_add(&c->version, 1);
}

/* Copies a text. Returns its length. */
static size_t read_bytes(const atomic_uchar *length, const atomic_uchar *from, char *to) {
	const size_t n = atomic_load(length);
	for (size_t i = 0; i < n; i++) to[i] = (char)atomic_load(&from[i]);
	return n;
}

/* Reads a place, in which nothing is found while it is written to. Returns the length of the proof. */
static size_t read_place(const struct challenge *c, struct slice token, char *proof) {
	char found[CHALLENGE_TOKEN_MAX];
	const unsigned version = atomic_load(&c->version);
	const struct slice other = {.at = found, .length = read_bytes(&c->token_length, c->token, found)};
	const size_t length = slice_equal(other, token) ? read_bytes(&c->proof_length, c->proof, proof) : 0;
	return version % 2 == 0 && atomic_load(&c->version) == version ? length : 0;
}

bool challenges_put(struct challenges *c, struct slice token, struct slice proof) {
	_Static_assert(CHALLENGE_PROOF_MAX <= UCHAR_MAX + 1, "lengths are bytes");
	if (!is_plain(token) || !is_plain(proof)) return false;
	if (token.length > CHALLENGE_TOKEN_MAX || proof.length >= CHALLENGE_PROOF_MAX) return false;
	for (int i = 0; i < CHALLENGES_MAX; i++) {
		if (atomic_load(&c->at[i].proof_length)) continue;
		write_place(&c->at[i], token, proof);
		return true;
	}
	return false;
}

void challenges_remove(struct challenges *c, struct slice token) {
	char proof[CHALLENGE_PROOF_MAX];
	for (int i = 0; i < CHALLENGES_MAX; i++)
		if (read_place(&c->at[i], token, proof)) write_place(&c->at[i], (struct slice){0}, (struct slice){0});
}

void challenges_clear(struct challenges *c) {
	for (int i = 0; i < CHALLENGES_MAX; i++) {
		if (atomic_load(&c->at[i].version) % 2) atomic_fetch_add(&c->at[i].version, 1); /* its writer was killed */
		write_place(&c->at[i], (struct slice){0}, (struct slice){0});
	}
}

size_t challenges_find(const struct challenges *c, struct slice token, char *proof) {
	for (int i = 0; i < CHALLENGES_MAX; i++) {
		size_t length = token.length ? read_place(&c->at[i], token, proof) : 0;
		if (length) return length;
	}
	return 0;
}
