/* password_check.c - see password_check.h. */
#include "gatling/site/access/password_check.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>

#include "gatling/base/platform.h"
#include "gatling/client/address_table.h"
#include "gatling/site/access/password_cost.h"
#include "gatling/site/access/password_hash.h"

enum {
	DIGEST = 32,
	SECRET = 32,
	TURNS = 1024 /* owners, and realms, whose last turns are told apart */
};

/* The measuring of kinds of hashes. */
struct measurement {
	struct job job;
	struct password_checks *checks;
	unsigned kinds;
};

struct check {
	struct job job;
	struct password_checks *checks;
	uint64_t network; /* of the client (address_table.h) */
	uint64_t owner, realm;
	unsigned char digest[DIGEST];
	char *hash;
	bool right;        /* the password matches the hash */
	bool undecided;    /* it was not checked: there is no memory, or the thread ends */
	bool unknown_user; /* the hash is another user's, so that the check takes as long */
	char password[AUTH_PASSWORD_MAX + 1];
	struct check *next;
};

struct password_checks {
	struct jobs *jobs;
	int64_t now_ms;   /* of the last password_check() */
	EVP_MAC_CTX *mac; /* for make_digest(), and its key; NULL before the first use */
	unsigned char secret[SECRET];
	struct check *checking;        /* the checks that wait, newest first, and the running one */
	struct check *running;         /* in the thread; or NULL */
	struct measurement *measuring; /* or NULL */
	uint64_t turn; /* the number of the last check that was started, and of that for each owner and realm, by hashes */
	uint64_t owner_turn[TURNS], realm_turn[TURNS];
	/* digests of passwords; two tables, so that guesses do not evict right ones */
	unsigned char right[AUTH_KNOWN][DIGEST], wrong[AUTH_WRONG][DIGEST];
};

struct password_checks *password_checks_new(struct jobs *jobs) {
	struct password_checks *p = calloc(1, sizeof *p);
	if (p) p->jobs = jobs;
	return p;
}

void password_checks_free(struct password_checks *p) {
	if (!p) return;
	EVP_MAC_CTX_free(p->mac);
	OPENSSL_cleanse(p, sizeof *p);
	free(p);
}

/* --- what is remembered --- */

/* Generates the secret, and prepares p->mac. Returns false without memory. */
static bool open_mac(struct password_checks *p) {
	const OSSL_PARAM how[] = {OSSL_PARAM_construct_utf8_string("digest", "SHA256", 0), OSSL_PARAM_construct_end()};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *mac = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
	EVP_MAC_free(hmac);
	if (mac && EVP_MAC_CTX_set_params(mac, how) && RAND_bytes(p->secret, SECRET) == 1) p->mac = mac;
	else EVP_MAC_CTX_free(mac);
	return p->mac;
}

/* Hashes a name and password for this version of a realm, so that they need not be kept. HMAC(3) would fetch its
 * algorithms each time, which takes twice as long as this. Returns false without memory. */
static bool make_digest(struct password_checks *p, const struct password_question *q, unsigned char *digest) {
	const size_t length = (size_t)(q->password - q->user) + strlen(q->password);
	return (p->mac || open_mac(p)) && EVP_MAC_init(p->mac, p->secret, SECRET, NULL) &&
		   EVP_MAC_update(p->mac, (const unsigned char *)&q->realm, sizeof q->realm) &&
		   EVP_MAC_update(p->mac, (const unsigned char *)q->user, length) &&
		   EVP_MAC_final(p->mac, digest, NULL, DIGEST);
}

/* Returns the place of a digest in a table. */
static unsigned char *place_of(unsigned char (*table)[DIGEST], size_t size, const unsigned char *digest) {
	uint32_t index;
	memcpy(&index, digest, sizeof index);
	return table[index % size];
}

static bool is_known(unsigned char (*table)[DIGEST], size_t size, const unsigned char *digest) {
	return CRYPTO_memcmp(place_of(table, size, digest), digest, DIGEST) == 0;
}

/* --- checking --- */

static void check_password(struct job *job, const atomic_bool *stop) {
	struct check *c = (struct check *)job;
	char hash[PLATFORM_CRYPT_ROOM];
	unsigned kinds = 0;
	c->undecided = atomic_load(stop);
	/* its realm allows the hash, but not for passwords of any length */
	if (c->undecided || password_cost(c->hash, strlen(c->password), &kinds) != PASSWORD_AFFORDABLE) return;
	/* one at a time in the process: each worker has a thread like this one */
	static pthread_mutex_t memory = PTHREAD_MUTEX_INITIALIZER;
	const bool alone = password_cost_takes_memory(c->hash);
	if (alone) pthread_mutex_lock(&memory);
	const bool done = password_hash(c->password, c->hash, hash);
	c->undecided = !done && errno == ENOMEM;
	if (alone) pthread_mutex_unlock(&memory);
	if (!done) return;
	size_t length = strlen(hash);
	c->right = strlen(c->hash) == length && CRYPTO_memcmp(hash, c->hash, length) == 0;
	OPENSSL_cleanse(hash, sizeof hash);
}

static void check_free(struct check *c) {
	free(c->hash);
	OPENSSL_cleanse(c, sizeof *c);
	free(c);
}

/* Drops the checks for which no request waits any more. */
static void drop_unwanted(struct password_checks *p) {
	for (struct check **link = &p->checking, *c; (c = *link);) {
		bool unwanted = c != p->running && atomic_load(&c->job.unwanted);
		if (unwanted) *link = c->next;
		else link = &c->next;
		if (unwanted) check_free(c);
	}
}

/* The attempts of addresses, in all workers together. */
static struct address_entry attempt_entries[AUTH_ADDRESSES / ADDRESS_WAYS][ADDRESS_WAYS];
static struct address_table attempt_table = {.set = attempt_entries, .sets = AUTH_ADDRESSES / ADDRESS_WAYS};
static const struct address_rate attempt_rate = {.interval_ns = AUTH_ATTEMPT_MS * ADDRESS_NS_PER_MS,
												 .burst = AUTH_ATTEMPTS};

static int64_t attempts_used(const struct password_checks *p, uint64_t network) {
	return address_used(&attempt_table, network, attempt_rate, p->now_ms * ADDRESS_NS_PER_MS);
}

/* Chooses the check to start: of the owner whose last turn was first, of these of the realm whose last turn was first,
 * of these of the address with the fewest attempts, so that guesses have to wait, and of these the oldest. Returns it,
 * or NULL. */
static struct check *choose_next(struct password_checks *p) {
	struct check *chosen = NULL;
	int64_t least = 0;
	for (struct check *c = p->checking; c; c = c->next) {
		const int64_t attempts = attempts_used(p, c->network);
		const uint64_t owner = p->owner_turn[c->owner % TURNS], realm = p->realm_turn[c->realm % TURNS];
		const uint64_t first_owner = chosen ? p->owner_turn[chosen->owner % TURNS] : UINT64_MAX;
		const uint64_t first_realm = chosen ? p->realm_turn[chosen->realm % TURNS] : UINT64_MAX;
		const bool later = owner != first_owner   ? owner > first_owner
						   : realm != first_realm ? realm > first_realm
												  : attempts > least;
		if (later) continue;
		chosen = c;
		least = attempts;
	}
	return chosen;
}

/* Starts the next check, if none is running. */
static void start_next(struct password_checks *p) {
	struct check *next = p->running ? NULL : choose_next(p);
	if (!next || !jobs_add(p->jobs, &next->job)) return; /* the next check starts it */
	p->running = next;
	p->owner_turn[next->owner % TURNS] = p->realm_turn[next->realm % TURNS] = ++p->turn;
}

/* Returns how many checks of an owner wait. */
static unsigned waiting_of(const struct password_checks *p, uint64_t owner) {
	unsigned n = 0;
	for (const struct check *c = p->checking; c; c = c->next) n += c != p->running && c->owner == owner;
	return n;
}

/* Chooses the check to drop for one of an owner and address: if an owner has more that wait than this one would have,
 * one of the owner with most; otherwise one of an address that has more attempts than this one would have. Of these it
 * is one of the address with the most attempts. Returns the link to it, or NULL. */
static struct check **choose_worst(struct password_checks *p, uint64_t owner, uint64_t network) {
	struct check **chosen = NULL;
	unsigned most = waiting_of(p, owner) + 1;
	const unsigned own = most;
	for (const struct check *c = p->checking; c; c = c->next) {
		const unsigned waiting = waiting_of(p, c->owner);
		if (waiting > most) most = waiting;
	}
	int64_t attempts = most > own ? -1 : attempts_used(p, network) + 1;
	for (struct check **link = &p->checking; *link; link = &(*link)->next) {
		const int64_t used = attempts_used(p, (*link)->network);
		if (*link == p->running || used <= attempts) continue;
		if (most > own && waiting_of(p, (*link)->owner) < most) continue;
		chosen = link;
		attempts = used;
	}
	return chosen;
}

/* Makes room for a check of an owner and address by dropping another one. Returns false if that would not be fair. */
static bool make_place(struct password_checks *p, uint64_t owner, uint64_t network) {
	struct check **worst = choose_worst(p, owner, network);
	if (!worst) return false;
	struct check *c = *worst;
	atomic_store(&c->job.unwanted, true); /* so it does not run, and its requests try again */
	bool added = jobs_add(p->jobs, &c->job);
	if (added) *worst = c->next;
	else atomic_store(&c->job.unwanted, false);
	return added;
}

/* --- measuring --- */

static void measure(struct job *job, const atomic_bool *stop) {
	const struct measurement *m = (const struct measurement *)job;
	if (!atomic_load(stop)) password_cost_measure(m->kinds);
}

static void measured(struct job *job) {
	struct measurement *m = (struct measurement *)job;
	m->checks->measuring = NULL;
	free(m);
}

struct job *password_measure(struct password_checks *p, unsigned kinds) {
	if (p->measuring) return &p->measuring->job;
	struct measurement *m = malloc(sizeof *m);
	if (!m) return NULL;
	*m = (struct measurement){.job = {.run = measure, .finish = measured}, .checks = p, .kinds = kinds};
	if (!jobs_add(p->jobs, &m->job)) {
		free(m);
		return NULL;
	}
	p->measuring = m;
	return &m->job;
}

/* --- the checks --- */

static void password_checked(struct job *job) {
	struct check *c = (struct check *)job, **link = &c->checks->checking;
	struct password_checks *p = c->checks;
	if (c == p->running) {
		while (*link != c) link = &(*link)->next;
		*link = c->next;
		p->running = NULL;
	}
	bool decided = job->ran && !c->undecided, right = c->right && !c->unknown_user;
	if (job->ran && (right || c->undecided)) address_give_back(&attempt_table, c->network, attempt_rate);
	if (decided && right) {
		memcpy(place_of(p->right, AUTH_KNOWN, c->digest), c->digest, DIGEST);
	} else if (decided) {
		memcpy(place_of(p->wrong, AUTH_WRONG, c->digest), c->digest, DIGEST);
	}
	check_free(c);
	drop_unwanted(p);
	start_next(p);
}

static struct check *add_check(struct password_checks *p, const struct password_question *q,
							   const unsigned char *digest) {
	struct slice hash;
	const bool known = users_find(q->users, slice_of(q->user), &hash);
	struct check *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->job = (struct job){.run = check_password, .finish = password_checked};
	c->checks = p;
	c->network = q->network;
	c->owner = q->owner;
	c->realm = q->realm;
	c->unknown_user = !known;
	memcpy(c->digest, digest, DIGEST);
	memcpy(c->password, q->password, strlen(q->password) + 1);
	c->hash = strndup(hash.at, hash.length);
	if (!c->hash) {
		check_free(c);
		return NULL;
	}
	c->next = p->checking;
	p->checking = c;
	return c;
}

enum auth_result password_check(struct password_checks *p, const struct password_question *q, struct job **job) {
	unsigned char digest[DIGEST];
	p->now_ms = q->now_ms;
	if (!make_digest(p, q, digest)) return AUTH_BUSY;
	if (is_known(p->wrong, AUTH_WRONG, digest)) return AUTH_REQUIRED;
	if (is_known(p->right, AUTH_KNOWN, digest)) return AUTH_ADMITTED;
	drop_unwanted(p);
	struct check *c = NULL;
	unsigned checks = 0, of_address = 0;
	for (struct check *other = p->checking; other; other = other->next, checks++) {
		of_address += other->network == q->network;
		if (CRYPTO_memcmp(other->digest, digest, DIGEST) == 0) c = other;
	}
	if (!q->may_wait || (!c && of_address >= AUTH_CHECKS_EACH)) return AUTH_BUSY;
	if (!c && checks >= AUTH_CHECKS && !make_place(p, q->owner, q->network)) return AUTH_BUSY;
	if (!c && !address_take(&attempt_table, q->network, attempt_rate, q->now_ms * ADDRESS_NS_PER_MS))
		return AUTH_LIMITED;
	if (!c && !(c = add_check(p, q, digest))) return AUTH_BUSY;
	start_next(p);
	*job = &c->job;
	if (p->running) return AUTH_PENDING;
	atomic_store(&c->job.unwanted, !c->job.waiters); /* there is no thread: drop_unwanted() may take it */
	return AUTH_BUSY;
}
