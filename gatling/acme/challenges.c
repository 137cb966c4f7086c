/* challenges.c - see challenges.h. Each place has a counter that is odd while the place is written (a seqlock), so that
 * readers neither see half of a proof nor wait. The writer has its own list of what is where: it does not trust the
 * shared memory, which others might be able to write to after all. */
#include "gatling/acme/challenges.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

struct shared_text {
	atomic_uint length;
	atomic_uchar octet[CHALLENGE_PROOF_MAX];
};

struct shared_proof {
	atomic_uint version;
	struct shared_text token, proof;
};

/* What the writer knows about a place. */
struct entry {
	const void *owner; /* NULL: the place is free */
	char token[CHALLENGE_TOKEN_MAX];
	size_t length;
};

struct challenges {
	struct shared_proof *shared; /* CHALLENGES_MAX */
	struct entry entry[CHALLENGES_MAX];
};

enum { SHARED_SIZE = CHALLENGES_MAX * sizeof(struct shared_proof) };

struct challenges *challenges_new(void) {
	struct challenges *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->shared = mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->shared != MAP_FAILED) return c;
	free(c);
	return NULL;
}

void challenges_protect(struct challenges *c) { (void)mprotect(c->shared, SHARED_SIZE, PROT_READ); }

void challenges_free(struct challenges *c) {
	if (!c) return;
	(void)munmap(c->shared, SHARED_SIZE);
	free(c);
}

/* --- writing --- */

/* Returns whether a text consists of base64url (RFC 4648, section 5) and dots. */
static bool is_plain(struct slice text) {
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
	for (size_t i = 0; i < text.length; i++)
		if (!memchr(allowed, text.at[i], sizeof allowed - 1)) return false;
	return text.length > 0;
}

static void write_text(struct shared_text *to, struct slice text) {
	atomic_store(&to->length, (unsigned)text.length);
	for (size_t i = 0; i < text.length; i++) atomic_store(&to->octet[i], (unsigned char)text.at[i]);
}

static void write_place(struct shared_proof *p, struct slice token, struct slice proof) {
	const unsigned writing = atomic_load(&p->version) | 1; /* even if its last writer was killed meanwhile */
	atomic_store(&p->version, writing);
	write_text(&p->token, token);
	write_text(&p->proof, proof);
	atomic_store(&p->version, writing + 1);
}

bool challenges_put(struct challenges *c, const void *owner, struct slice token, struct slice proof) {
	if (!is_plain(token) || !is_plain(proof)) return false;
	if (token.length > CHALLENGE_TOKEN_MAX || proof.length > CHALLENGE_PROOF_MAX) return false;
	for (int i = 0; i < CHALLENGES_MAX; i++) {
		struct entry *e = &c->entry[i];
		if (e->owner) continue;
		e->owner = owner;
		e->length = token.length;
		memcpy(e->token, token.at, token.length);
		write_place(&c->shared[i], token, proof);
		return true;
	}
	return false;
}

static void clear(struct challenges *c, int i) {
	c->entry[i].owner = NULL;
	write_place(&c->shared[i], (struct slice){0}, (struct slice){0});
}

void challenges_remove(struct challenges *c, struct slice token) {
	for (int i = 0; i < CHALLENGES_MAX; i++) {
		const struct entry *e = &c->entry[i];
		if (e->owner && slice_equal((struct slice){.at = e->token, .length = e->length}, token)) clear(c, i);
	}
}

void challenges_remove_all(struct challenges *c, const void *owner) {
	for (int i = 0; i < CHALLENGES_MAX; i++)
		if (c->entry[i].owner == owner) clear(c, i);
}

/* --- reading --- */

/* Copies a text of at most `most` bytes. Returns its length, or 0 if it is longer. */
static size_t read_text(const struct shared_text *from, char *to, size_t most) {
	const size_t n = atomic_load(&from->length);
	for (size_t i = 0; i < n && n <= most; i++) to[i] = (char)atomic_load(&from->octet[i]);
	return n <= most ? n : 0;
}

size_t challenges_find(const struct challenges *c, struct slice token, char *proof) {
	char found[CHALLENGE_TOKEN_MAX];
	for (int i = 0; i < CHALLENGES_MAX && token.length; i++) {
		const struct shared_proof *p = &c->shared[i];
		const unsigned version = atomic_load(&p->version);
		const struct slice other = {.at = found, .length = read_text(&p->token, found, sizeof found)};
		const size_t length = slice_equal(other, token) ? read_text(&p->proof, proof, CHALLENGE_PROOF_MAX) : 0;
		/* a proof that is being written is not there yet */
		if (length && version % 2 == 0 && atomic_load(&p->version) == version) return length;
	}
	return 0;
}
