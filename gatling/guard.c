/* guard.c - see guard.h. */
#include "gatling/guard.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/hash.h"
#include "gatling/octet.h"
#include "gatling/owfat.h"
#include "gatling/platform.h"
#include "gatling/rules.h"
#include "gatling/text_file.h"

enum { BUCKETS = 256, DIGEST = 32, SECRET = 32, CREDENTIALS_MAX = GUARD_USER_MAX + 1 + GUARD_PASSWORD_MAX };

struct user {
	struct slice name;
	const char *hash; /* NUL-terminated */
};

struct guard {
	unsigned references;
	uint64_t id; /* of the content: a file that is read again, and is the same, asks nobody again */
	char *text;  /* of the file; NULL: nobody gets in */
	struct slice realm;
	unsigned users;
	struct user *user;
};

/* A file that exists. */
struct guarded {
	struct text_file file;
	struct guard *guard;
	struct guarded *next;
	char path[];
};

struct known {
	unsigned char digest[DIGEST];
	bool used;
};

struct attempts {
	unsigned char address[16];
	int64_t full_ms; /* when it has all its attempts again */
};

struct checking {
	struct job job;
	struct guards *guards;
	struct peer peer;
	unsigned char digest[DIGEST];
	char *hash;
	bool right, nobody; /* nobody: there is no such user, and it shall take as long */
	char password[GUARD_PASSWORD_MAX + 1];
	struct checking *next;
};

struct guards {
	const struct tree *tree;
	struct jobs *jobs;
	struct guard locked; /* always keeps a reference */
	unsigned char secret[SECRET];
	struct guarded *bucket[BUCKETS];
	struct checking *checking;
	struct known right[GUARD_KNOWN], wrong[GUARD_WRONG]; /* apart: guesses crowd out nobody */
	struct attempts attempts[GUARD_ADDRESSES];
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
	gs->locked.references = 1;
	if (RAND_bytes(gs->secret, sizeof gs->secret) == 1) return gs;
	free(gs);
	errno = EIO;
	return NULL;
}

void guards_free(struct guards *gs) {
	if (!gs) return;
	for (int i = 0; i < BUCKETS; i++) {
		for (struct guarded *f; (f = gs->bucket[i]);) {
			gs->bucket[i] = f->next;
			guard_release(f->guard);
			free(f);
		}
	}
	OPENSSL_cleanse(gs, sizeof *gs);
	free(gs);
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
	struct rules_lines lines;
	struct rules_error too_large;
	struct slice line;
	unsigned ends = 0;
	*number = 1;
	if (!rules_lines(&lines, (struct slice){.at = g->text, .length = length}, &too_large) ||
		!rules_next_line(&lines, &g->realm) || !(g->realm = slice_trim(g->realm)).length)
		return "the first line has to be the realm; nobody gets in";
	if (g->realm.length > GUARD_REALM_MAX || octet_text(g->realm.at, g->realm.length) != g->realm.length)
		return "this cannot be a realm; nobody gets in";
	for (size_t i = 0; i < length; i++) ends += g->text[i] == '\n';
	if (!(g->user = calloc(ends + 1, sizeof *g->user))) return "no memory; nobody gets in";
	while (rules_next_line(&lines, &line)) {
		*number = lines.line;
		if (!line.length || line.at[0] == '#') continue;
		const char *wrong = parse_user(g, line);
		if (wrong) return wrong;
	}
	return NULL;
}

static uint64_t id_of(struct guards *gs, const char *path, const char *text, size_t length) {
	unsigned char digest[DIGEST];
	unsigned size = DIGEST;
	uint64_t key, id;
	memcpy(&key, gs->secret, sizeof key);
	key = hash_octets(key, (struct slice){.at = path, .length = strlen(path)});
	HMAC(EVP_sha256(), &key, sizeof key, (const unsigned char *)text, length, digest, &size);
	memcpy(&id, digest, sizeof id);
	return id;
}

/* Takes text over; NULL: it cannot be read. NULL: ENOMEM. */
static struct guard *guard_new(struct guards *gs, const struct guarded *f, char *text, size_t length) {
	struct guard *g = calloc(1, sizeof *g);
	unsigned line = 0;
	if (!g) {
		free(text);
		return NULL;
	}
	g->references = 1;
	g->id = text ? id_of(gs, f->path, text, length) : 0;
	g->text = text;
	const char *wrong = text ? parse(g, length, &line) : "this cannot be read: nobody gets in";
	if (!wrong) return g;
	text_file_complain(&f->file, f->path, line, wrong);
	free(g->text);
	g->text = NULL;
	g->users = 0;
	return g;
}

static void forget(struct guarded **link) {
	struct guarded *f = *link;
	*link = f->next;
	guard_release(f->guard);
	free(f);
}

/* Nobody gets in where it cannot even be seen whether there is a guard. */
static struct guard *locked(struct guards *gs) {
	guard_retain(&gs->locked);
	return &gs->locked;
}

struct guard *guards_find(struct guards *gs, const char *path) {
	struct slice name = {.at = path, .length = strlen(path)};
	struct guarded **link = &gs->bucket[hash_octets(0, name) % BUCKETS];
	while (*link && strcmp((*link)->path, path) != 0) link = &(*link)->next;
	if (!*link) {
		struct stat st;
		bool missing =
			tree_stat(gs->tree, path, &st) == -1 && (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG);
		if (missing) return NULL;
		if (!(*link = calloc(1, sizeof **link + name.length + 1))) return locked(gs);
		memcpy((*link)->path, path, name.length);
	}
	struct guarded *f = *link;
	char *text;
	size_t length;
	switch (text_file_look(&f->file, gs->tree, path, &text, &length)) {
	case TEXT_SAME: break;
	case TEXT_NONE: forget(link); return NULL;
	case TEXT_NEW:
	case TEXT_FAILED:
		guard_release(f->guard);
		f->guard = guard_new(gs, f, text, length);
		break;
	}
	if (!f->guard) {
		forget(link);
		return locked(gs);
	}
	guard_retain(f->guard);
	return f->guard;
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
	unsigned char text[sizeof g->id + CREDENTIALS_MAX + 2];
	size_t length = (size_t)(password - gs->user) + strlen(password); /* they lie side by side */
	unsigned size = DIGEST;
	memcpy(text, &g->id, sizeof g->id);
	memcpy(text + sizeof g->id, gs->user, length);
	HMAC(EVP_sha256(), gs->secret, SECRET, text, sizeof g->id + length, digest, &size);
	OPENSSL_cleanse(text, sizeof text);
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

/* --- how often --- */

static struct attempts *attempts_of(struct guards *gs, const struct peer *peer) {
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct peer subnet = *peer;
	if (memcmp(subnet.address.s6_addr, mapped, sizeof mapped) != 0) memset(subnet.address.s6_addr + 8, 0, 8);
	struct slice key = {.at = (const char *)subnet.address.s6_addr, .length = sizeof subnet.address.s6_addr};
	struct attempts *a = &gs->attempts[hash_octets(gs->secret[0], key) % GUARD_ADDRESSES];
	if (memcmp(a->address, key.at, key.length) != 0) {
		memcpy(a->address, key.at, key.length);
		a->full_ms = 0;
	}
	return a;
}

/* false: it has had all its attempts. */
static bool take_attempt(struct guards *gs, const struct peer *peer, int64_t now_ms) {
	struct attempts *a = attempts_of(gs, peer);
	if (a->full_ms < now_ms) a->full_ms = now_ms;
	if (a->full_ms - now_ms > (GUARD_ATTEMPTS - 1) * GUARD_ATTEMPT_MS) return false;
	a->full_ms += GUARD_ATTEMPT_MS;
	return true;
}

/* --- checking --- */

static void check_password(struct job *job, const atomic_bool *stop) {
	struct checking *c = (struct checking *)job;
	char hash[PLATFORM_CRYPT_ROOM];
	if (atomic_load(stop) || !platform_crypt(c->password, c->hash, hash)) return;
	size_t length = strlen(hash);
	c->right = strlen(c->hash) == length && CRYPTO_memcmp(hash, c->hash, length) == 0;
	OPENSSL_cleanse(hash, sizeof hash);
}

static void checking_free(struct checking *c) {
	free(c->hash);
	OPENSSL_cleanse(c, sizeof *c);
	free(c);
}

static void password_checked(struct job *job) {
	struct checking *c = (struct checking *)job, **link = &c->guards->checking;
	while (*link != c) link = &(*link)->next;
	*link = c->next;
	if (c->right && !c->nobody) {
		note_known(c->guards->right, GUARD_KNOWN, c->digest);
		attempts_of(c->guards, &c->peer)->full_ms -= GUARD_ATTEMPT_MS; /* it has not been used up */
	} else {
		note_known(c->guards->wrong, GUARD_WRONG, c->digest);
	}
	checking_free(c);
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
	c->peer = *peer;
	c->nobody = !user;
	memcpy(c->digest, digest, DIGEST);
	memcpy(c->password, password, strlen(password) + 1);
	c->hash = strdup(user ? user->hash : g->user[0].hash);
	if (!c->hash || !jobs_add(gs->jobs, &c->job)) {
		checking_free(c);
		return NULL;
	}
	c->next = gs->checking;
	gs->checking = c;
	return c;
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
	*a = (struct admission){0};
	if (!g->text) return GUARD_FORBIDS;
	if (!request_has(r, FIELD_AUTHORIZATION)) return ask(gs, g, a);
	const char *password = decode(gs, r);
	if (!password || !g->users) return ask(gs, g, a);
	make_digest(gs, g, password, digest);
	if (is_known(gs->wrong, GUARD_WRONG, digest)) return ask(gs, g, a);
	if (is_known(gs->right, GUARD_KNOWN, digest)) {
		a->user = (struct slice){.at = gs->user, .length = strlen(gs->user)};
		return GUARD_ADMITS;
	}
	struct checking *c = gs->checking;
	while (c && CRYPTO_memcmp(c->digest, digest, DIGEST) != 0) c = c->next;
	if (!patient) return GUARD_BUSY;
	if (!c && !take_attempt(gs, peer, now_ms)) {
		a->lines = SLICE("Retry-After: 3\r\n");
		return GUARD_LIMITS;
	}
	if (!c && !(c = start_checking(gs, g, password, digest, peer))) return GUARD_BUSY;
	a->job = &c->job;
	return GUARD_WAITS;
}
