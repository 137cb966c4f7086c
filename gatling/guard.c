/* guard.c - see guard.h. */
#include "gatling/guard.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/attempts.h"
#include "gatling/hash.h"
#include "gatling/octet.h"
#include "gatling/owfat.h"
#include "gatling/platform.h"
#include "gatling/rules.h"
#include "gatling/text_file.h"

static const char unreadable[] = "this cannot be read: nobody gets in";

enum { BUCKETS = 256, DIGEST = 32, SECRET = 32, CREDENTIALS_MAX = GUARD_USER_MAX + 1 + GUARD_PASSWORD_MAX };

struct user {
	struct slice name;
	const char *hash; /* NUL-terminated */
};

struct guard {
	unsigned references;
	uint64_t id; /* of the content: a file that is read again, and is the same, asks nobody again */
	char *text;  /* of the file; NULL: nobody gets in, */
	bool passes; /* for the moment: it could not be read for a reason that passes */
	struct slice realm;
	unsigned users;
	struct user *user;
};

/* A file that exists, whichever path leads to it. */
struct guarded {
	struct text_file file;
	struct guard *guard;
	dev_t device;
	ino_t inode;
	struct guarded *next;
};

struct known {
	unsigned char digest[DIGEST];
	bool used;
};

struct checking {
	struct job job;
	struct guards *guards;
	struct peer address; /* see attempts_address() */
	unsigned char digest[DIGEST];
	char *hash;
	bool started;       /* it is a job of the thread */
	bool given_up;      /* another took its place: it is not checked, and who waits asks again */
	bool right, nobody; /* nobody: there is no such user, and it shall take as long */
	char password[GUARD_PASSWORD_MAX + 1];
	struct checking *next;
};

struct guards {
	const struct tree *tree;
	struct jobs *jobs;
	int64_t now_ms;              /* of the last guards_check() */
	struct guard locked, unsure; /* always keep a reference */
	bool has_secret;             /* made when it is needed first */
	unsigned char secret[SECRET];
	struct guarded *bucket[BUCKETS];
	unsigned files, evicting;                            /* how many there are; the bucket from which one goes next */
	struct checking *checking;                           /* those that wait, and the one that is checked */
	unsigned checks;                                     /* how many */
	bool busy;                                           /* one is checked */
	struct known right[GUARD_KNOWN], wrong[GUARD_WRONG]; /* apart: guesses crowd out nobody */
	char user[CREDENTIALS_MAX + 1];
	char lines[2 * GUARD_REALM_MAX + 128];
};

void guard_retain(struct guard *g) { g->references++; }

void guard_release(struct guard *g) {
	if (!g || --g->references) return;
	free(g->text);
	free(g->user);
	free(g);
}

struct guards *guards_new(const struct tree *tree, struct jobs *jobs) {
	struct guards *gs = calloc(1, sizeof *gs);
	if (!gs) return NULL;
	gs->tree = tree;
	gs->jobs = jobs;
	gs->locked.references = gs->unsure.references = 1;
	gs->unsure.passes = true;
	return gs;
}

/* --- the files --- */

static const char *parse_user(struct guard *g, struct slice line) {
	const char *colon = memchr(line.at, ':', line.length);
	if (!colon) return "this is not USER:HASH; nobody gets in";
	size_t length = (size_t)(colon - line.at);
	const char *hash = colon + 1;
	if (length > GUARD_USER_MAX) return "the name is too long; nobody gets in";
	if (*hash == '{' || strncmp(hash, "$apr1$", 6) == 0)
		return "this hash is Apache's own, not crypt(3)'s (htpasswd -B makes one); nobody gets in";
	((char *)(uintptr_t)line.at)[line.length] = '\0'; /* over the line end, or the NUL behind all */
	g->user[g->users++] = (struct user){.name = {.at = line.at, .length = length}, .hash = hash};
	return NULL;
}

/* What is wrong in *number, the line; NULL: nothing. */
static const char *parse(struct guard *g, size_t length, unsigned *number) {
	struct slice rest = rules_text((struct slice){.at = g->text, .length = length}), line;
	unsigned ends = 0;
	*number = 1;
	if (!rules_next_line(&rest, &g->realm) || !g->realm.length)
		return "the first line has to be the realm; nobody gets in";
	if (g->realm.length > GUARD_REALM_MAX || octet_text(g->realm.at, g->realm.length) != g->realm.length)
		return "this cannot be a realm; nobody gets in";
	for (size_t i = 0; i < length; i++) ends += g->text[i] == '\n';
	if (!(g->user = calloc(ends + 1, sizeof *g->user))) return "no memory; nobody gets in";
	while (rules_next_line(&rest, &line)) {
		++*number;
		if (!line.length || line.at[0] == '#') continue;
		const char *wrong = parse_user(g, line);
		if (wrong) return wrong;
	}
	return NULL;
}

static uint64_t id_of(const struct guarded *f, const char *text, size_t length) {
	const uint64_t key[] = {(uint64_t)f->device, (uint64_t)f->inode};
	unsigned char digest[DIGEST];
	unsigned size = DIGEST;
	uint64_t id;
	HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)text, length, digest, &size);
	memcpy(&id, digest, sizeof id);
	return id;
}

/* Takes text over; NULL: it cannot be read. NULL: ENOMEM. */
static struct guard *guard_new(const struct guarded *f, const char *path, char *text, size_t length) {
	struct guard *g = calloc(1, sizeof *g);
	unsigned line = 0;
	if (!g) {
		free(text);
		return NULL;
	}
	g->references = 1;
	g->id = text ? id_of(f, text, length) : 0;
	g->text = text;
	g->passes = !text && tree_passes(f->file.error);
	const char *wrong = text ? parse(g, length, &line) : unreadable;
	if (!wrong) return g;
	text_file_complain(&f->file, path, line, wrong);
	free(g->text);
	g->text = NULL;
	g->users = 0;
	return g;
}

static void forget(struct guards *gs, struct guarded **link) {
	struct guarded *f = *link;
	*link = f->next;
	guard_release(f->guard);
	free(f);
	gs->files--;
}

void guards_free(struct guards *gs) {
	if (!gs) return;
	for (int i = 0; i < BUCKETS; i++)
		while (gs->bucket[i]) forget(gs, &gs->bucket[i]);
	OPENSSL_cleanse(gs, sizeof *gs);
	free(gs);
}

/* Room for one more: who uses a guard holds a reference. */
static void evict(struct guards *gs) {
	while (gs->files >= GUARDS_MAX) {
		struct guarded **link = &gs->bucket[gs->evicting++ % BUCKETS];
		if (*link) forget(gs, link);
	}
}

/* Nobody gets in where it cannot be seen what a guard says, for a moment or for longer. */
static struct guard *locked(struct guards *gs, int error) {
	struct guard *g = tree_passes(error) ? &gs->unsure : &gs->locked;
	guard_retain(g);
	return g;
}

/* The file with that inode; NULL: no memory. */
static struct guarded **find(struct guards *gs, const struct stat *st) {
	const uint64_t key[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
	struct slice octets = {.at = (const char *)key, .length = sizeof key};
	struct guarded **link = &gs->bucket[hash_octets(0, octets) % BUCKETS];
	while (*link && !((*link)->device == st->st_dev && (*link)->inode == st->st_ino)) link = &(*link)->next;
	if (*link) return link;
	evict(gs);
	link = &gs->bucket[hash_octets(0, octets) % BUCKETS];
	struct guarded *f = calloc(1, sizeof *f);
	if (!f) return NULL;
	*f = (struct guarded){.device = st->st_dev, .inode = st->st_ino, .next = *link};
	*link = f;
	gs->files++;
	return link;
}

struct guard *guards_find(struct guards *gs, const char *path) {
	static const struct text_file unknown;
	struct stat st;
	if (tree_lstat(gs->tree, path, &st) == -1) return errno == ENOENT || errno == ENOTDIR ? NULL : locked(gs, errno);
	if (tree_stat(gs->tree, path, &st) == -1) { /* a link that leads nowhere, or out */
		int error = errno;
		if (!tree_passes(error)) text_file_complain(&unknown, path, 0, unreadable);
		return locked(gs, error);
	}
	struct guarded **link = find(gs, &st);
	if (!link) return locked(gs, ENOMEM);
	struct guarded *f = *link;
	char *text;
	size_t length;
	enum text_state state = text_file_look(&f->file, gs->tree, path, &text, &length);
	if (state == TEXT_NEW && f->guard && f->guard->id == id_of(f, text, length)) {
		free(text); /* it has been touched */
	} else if (state != TEXT_SAME) {
		guard_release(f->guard);
		f->guard = guard_new(f, path, text, length);
	}
	if (!f->guard) {
		forget(gs, link);
		return locked(gs, ENOMEM);
	}
	guard_retain(f->guard);
	return f->guard;
}

void guards_of_path(struct guards *gs, struct slice file, struct guard **guard) {
	static const char here[] = ".htaccess", below[] = ".htaccess_global";
	char path[PATH_MAX + sizeof below];
	size_t n = file.length;
	while (n && file.at[n - 1] != '/') n--;
	guard[0] = guard[1] = NULL;
	if (n >= PATH_MAX) return;
	if (n) memcpy(path, file.at, n);
	const char *slash = memchr(path, '/', n);
	size_t first = slash ? (size_t)(slash + 1 - path) : 0;
	while (true) { /* as Apache's do, the nearest one replaces those above */
		memcpy(path + n, here, sizeof here);
		guard[0] = guards_find(gs, path);
		if (guard[0] || !n) break;
		for (n--; n && path[n - 1] != '/';) n--;
	}
	if (!first) return;
	memcpy(path, file.at, first);
	memcpy(path + first, below, sizeof below);
	guard[1] = guards_find(gs, path);
}

/* --- who asks --- */

/* RFC 7617, section 2: the name into gs->user, NUL-terminated, with the password behind it. NULL: there is none that
 * could be right. */
static char *decode(struct guards *gs, const struct request *r) {
	struct slice field = request_field(r, FIELD_AUTHORIZATION);
	struct slice scheme = SLICE("Basic ");
	enum { ENCODED_MAX = (CREDENTIALS_MAX + 2) / 3 * 4 };
	unsigned char decoded[ENCODED_MAX / 4 * 3 + 1];
	if (r->repeated >> FIELD_AUTHORIZATION & 1 || field.length <= scheme.length) return NULL;
	if (strncasecmp(field.at, scheme.at, scheme.length) != 0) return NULL;
	field = slice_trim((struct slice){.at = field.at + scheme.length, .length = field.length - scheme.length});
	if (!field.length || field.length > ENCODED_MAX || field.length % 4) return NULL;
	int n = EVP_DecodeBlock(decoded, (const unsigned char *)field.at, (int)field.length);
	for (size_t end = field.length; n > 0 && end > 0 && field.at[end - 1] == '='; end--) n--;
	if (n <= 0 || n > CREDENTIALS_MAX || memchr(decoded, '\0', (size_t)n)) return NULL;
	memcpy(gs->user, decoded, (size_t)n);
	OPENSSL_cleanse(decoded, sizeof decoded);
	gs->user[n] = '\0';
	char *colon = strchr(gs->user, ':');
	if (!colon || colon - gs->user > GUARD_USER_MAX || strlen(colon + 1) > GUARD_PASSWORD_MAX) return NULL;
	*colon = '\0';
	return colon + 1;
}

/* Stands for a name and password at this state of a file. */
static void make_digest(struct guards *gs, const struct guard *g, const char *password, unsigned char *digest) {
	unsigned char key[SECRET + sizeof g->id];
	size_t length = (size_t)(password - gs->user) + strlen(password); /* they lie side by side */
	unsigned size = DIGEST;
	memcpy(key, gs->secret, SECRET);
	memcpy(key + SECRET, &g->id, sizeof g->id);
	HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)gs->user, length, digest, &size);
}

static struct known *known_of(struct known *table, size_t size, const unsigned char *digest) {
	uint32_t index;
	memcpy(&index, digest, sizeof index);
	return &table[index % size];
}

static bool is_known(struct known *table, size_t size, const unsigned char *digest) {
	const struct known *k = known_of(table, size, digest);
	return k->used && CRYPTO_memcmp(k->digest, digest, DIGEST) == 0;
}

static void note_known(struct known *table, size_t size, const unsigned char *digest) {
	struct known *k = known_of(table, size, digest);
	memcpy(k->digest, digest, DIGEST);
	k->used = true;
}

/* --- checking --- */

static void check_password(struct job *job, const atomic_bool *stop) {
	struct checking *c = (struct checking *)job;
	char hash[PLATFORM_CRYPT_ROOM];
	if (atomic_load(stop) || c->given_up || !platform_crypt(c->password, c->hash, hash)) return;
	size_t length = strlen(hash);
	c->right = strlen(c->hash) == length && CRYPTO_memcmp(hash, c->hash, length) == 0;
	OPENSSL_cleanse(hash, sizeof hash);
}

static void checking_free(struct checking *c) {
	free(c->hash);
	OPENSSL_cleanse(c, sizeof *c);
	free(c);
}

static void start_next(struct guards *gs);

/* Whether those whom it was for have gone. */
static bool unwanted(const struct checking *c) { return !c->started && atomic_load(&c->job.unwanted); }

/* Drops those that nobody waits for any more. */
static void sweep(struct guards *gs) {
	for (struct checking **link = &gs->checking; *link;) {
		struct checking *c = *link;
		if (!unwanted(c)) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		gs->checks--;
		checking_free(c);
	}
}

static void password_checked(struct job *job) {
	struct checking *c = (struct checking *)job, **link = &c->guards->checking;
	struct guards *gs = c->guards;
	while (*link != c) link = &(*link)->next;
	*link = c->next;
	gs->checks--;
	if (!c->given_up) gs->busy = false;
	if (c->given_up || !job->ran) { /* nobody waits for it any more, or somebody else came first */
		checking_free(c);
	} else {
		if (c->right && !c->nobody) {
			note_known(gs->right, GUARD_KNOWN, c->digest);
			attempts_give_back(&c->address); /* it has not been used up */
		} else {
			note_known(gs->wrong, GUARD_WRONG, c->digest);
		}
		checking_free(c);
	}
	sweep(gs);
	start_next(gs);
}

/* One after the other: first those at addresses that have tried least, so that who guesses waits for who does not; of
 * these the one that came first. */
static void start_next(struct guards *gs) {
	struct checking *next = NULL;
	unsigned least = 0;
	if (gs->busy) return;
	for (struct checking *c = gs->checking; c; c = c->next) {
		unsigned used = attempts_used(&c->address, gs->now_ms);
		if (c->started || (next && used > least)) continue; /* the newest are in front */
		next = c;
		least = used;
	}
	if (!next) return;
	next->started = true;
	gs->busy = jobs_add(gs->jobs, &next->job);
	next->started = gs->busy; /* else with the next that comes */
}

/* When all places are taken: gives that of the one who has tried most to an address that has tried less. false: there
 * is none. */
static bool make_place(struct guards *gs, const struct peer *address) {
	struct checking *worst = NULL;
	unsigned most = attempts_used(address, gs->now_ms) + 1; /* with the one to come */
	for (struct checking *c = gs->checking; c; c = c->next) {
		unsigned used = attempts_used(&c->address, gs->now_ms);
		if (c->started || used <= most) continue;
		worst = c;
		most = used;
	}
	if (!worst) return false;
	worst->started = worst->given_up = true;
	if (jobs_add(gs->jobs, &worst->job)) return true; /* which tells who waits */
	worst->started = worst->given_up = false;
	return false;
}

static const struct user *find_user(const struct guard *g, const char *name) {
	struct slice asked = {.at = name, .length = strlen(name)};
	for (unsigned i = 0; i < g->users; i++)
		if (slice_equal(g->user[i].name, asked)) return &g->user[i];
	return NULL;
}

static struct checking *start_checking(struct guards *gs, const struct guard *g, const char *password,
									   const unsigned char *digest, const struct peer *peer) {
	const struct user *user = find_user(g, gs->user);
	struct checking *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->job = (struct job){.run = check_password, .finish = password_checked};
	c->guards = gs;
	c->address = attempts_address(peer);
	c->nobody = !user;
	memcpy(c->digest, digest, DIGEST);
	memcpy(c->password, password, strlen(password) + 1);
	c->hash = strdup(user ? user->hash : g->user[0].hash);
	if (!c->hash) {
		checking_free(c);
		return NULL;
	}
	c->next = gs->checking;
	gs->checking = c;
	gs->checks++;
	return c;
}

/* How many are under way for somebody at that address. */
static unsigned checks_of(const struct guards *gs, const struct peer *address) {
	unsigned n = 0;
	for (const struct checking *c = gs->checking; c; c = c->next)
		n += !c->given_up && memcmp(&c->address, address, sizeof *address) == 0;
	return n;
}

static enum verdict ask(struct guards *gs, const struct guard *g, struct admission *a) {
	char *at = gs->lines;
	at += fmt_str(at, "WWW-Authenticate: Basic realm=\"");
	for (size_t i = 0; i < g->realm.length; i++) {
		if (g->realm.at[i] == '"' || g->realm.at[i] == '\\') *at++ = '\\';
		*at++ = g->realm.at[i];
	}
	at += fmt_str(at, "\", charset=\"UTF-8\"\r\n");
	a->lines = (struct slice){.at = gs->lines, .length = (size_t)(at - gs->lines)};
	return GUARD_ASKS;
}

enum verdict guards_check(struct guards *gs, struct guard *g, const struct request *r, const struct peer *peer,
						  bool patient, int64_t now_ms, struct admission *a) {
	unsigned char digest[DIGEST];
	struct peer address = attempts_address(peer);
	*a = (struct admission){0};
	gs->now_ms = now_ms;
	if (!g->text) return g->passes ? GUARD_BUSY : GUARD_FORBIDS;
	if (!request_has(r, FIELD_AUTHORIZATION)) return ask(gs, g, a);
	const char *password = decode(gs, r);
	if (!password || !g->users) return ask(gs, g, a);
	if (!gs->has_secret && RAND_bytes(gs->secret, sizeof gs->secret) != 1) return GUARD_BUSY;
	gs->has_secret = true;
	make_digest(gs, g, password, digest);
	if (is_known(gs->wrong, GUARD_WRONG, digest)) return ask(gs, g, a);
	if (is_known(gs->right, GUARD_KNOWN, digest)) {
		a->user = (struct slice){.at = gs->user, .length = strlen(gs->user)};
		return GUARD_ADMITS;
	}
	sweep(gs);
	struct checking *c = gs->checking;
	while (c && (c->given_up || CRYPTO_memcmp(c->digest, digest, DIGEST) != 0)) c = c->next;
	if (!patient) return GUARD_BUSY;
	if (!c && checks_of(gs, &address) >= GUARD_CHECKS_EACH) return GUARD_BUSY;
	if (!c && gs->checks >= GUARD_CHECKS && !make_place(gs, &address)) return GUARD_BUSY;
	if (!c && !attempts_take(peer, now_ms)) {
		a->lines = SLICE("Retry-After: 3\r\n");
		return GUARD_LIMITS;
	}
	if (!c && !(c = start_checking(gs, g, password, digest, peer))) return GUARD_BUSY;
	start_next(gs);
	a->job = &c->job;
	if (gs->busy) return GUARD_WAITS;
	atomic_store(&c->job.unwanted, !c->job.waiters); /* there is no thread: to be swept */
	return GUARD_BUSY;
}
