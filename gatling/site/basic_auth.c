/* basic_auth.c - see basic_auth.h. */
#include "gatling/site/basic_auth.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/hash.h"
#include "gatling/base/owfat.h"
#include "gatling/base/platform.h"
#include "gatling/site/rules/text_file.h"
#include "gatling/http/chars.h"
#include "gatling/site/attempts.h"
#include "gatling/site/rules/rules.h"

static const char unreadable[] = "this cannot be read: nobody gets in";

enum { BUCKETS = 256, DIGEST = 32, SECRET = 32, CREDENTIALS_MAX = AUTH_USER_MAX + 1 + AUTH_PASSWORD_MAX };

struct auth_user {
	struct slice name;
	const char *hash; /* NUL-terminated */
};

struct realm {
	unsigned references;
	uint64_t id; /* of the content: a file that is read again, and is the same, asks nobody again */
	char *text;  /* of the file; NULL: nobody gets in, */
	bool passes; /* for the moment: it could not be read for a reason that passes */
	struct slice realm;
	unsigned users;
	struct auth_user *user;
};

/* A file that exists, whichever path leads to it. */
struct auth_file {
	struct text_file file;
	struct realm *realm;
	dev_t device;
	ino_t inode;
	struct auth_file *next;
};

struct known_password {
	unsigned char digest[DIGEST];
	bool used;
};

struct password_check {
	struct job job;
	struct basic_auth *auth;
	struct peer address; /* see attempts_address() */
	unsigned char digest[DIGEST];
	char *hash;
	bool started;       /* it is a job of the thread */
	bool given_up;      /* another took its place: it is not checked, and who waits asks again */
	bool right, nobody; /* nobody: there is no such user, and it shall take as long */
	char password[AUTH_PASSWORD_MAX + 1];
	struct password_check *next;
};

struct basic_auth {
	const struct docroot *docroot;
	struct jobs *jobs;
	int64_t now_ms;              /* of the last basic_auth_check() */
	struct realm locked, unsure; /* always keep a reference */
	bool has_secret;             /* made when it is needed first */
	unsigned char secret[SECRET];
	struct auth_file *bucket[BUCKETS];
	unsigned files, evicting;        /* how many there are; the bucket from which one goes next */
	struct password_check *checking; /* those that wait, and the one that is checked */
	unsigned checks;                 /* how many */
	bool busy;                       /* one is checked */
	struct known_password right[AUTH_KNOWN], wrong[AUTH_WRONG]; /* apart: guesses crowd out nobody */
	char user[CREDENTIALS_MAX + 1];
	char lines[2 * AUTH_REALM_MAX + 128];
};

void realm_retain(struct realm *g) { g->references++; }

void realm_release(struct realm *g) {
	if (!g || --g->references) return;
	free(g->text);
	free(g->user);
	free(g);
}

struct basic_auth *basic_auth_new(const struct docroot *docroot, struct jobs *jobs) {
	struct basic_auth *auth = calloc(1, sizeof *auth);
	if (!auth) return NULL;
	auth->docroot = docroot;
	auth->jobs = jobs;
	auth->locked.references = auth->unsure.references = 1;
	auth->unsure.passes = true;
	return auth;
}

/* --- the files --- */

static const char *parse_user(struct realm *g, struct slice line) {
	const char *colon = memchr(line.at, ':', line.length);
	if (!colon) return "this is not USER:HASH; nobody gets in";
	size_t length = (size_t)(colon - line.at);
	const char *hash = colon + 1;
	if (length > AUTH_USER_MAX) return "the name is too long; nobody gets in";
	if (*hash == '{' || strncmp(hash, "$apr1$", 6) == 0)
		return "this hash is Apache's own, not crypt(3)'s (htpasswd -B makes one); nobody gets in";
	((char *)(uintptr_t)line.at)[line.length] = '\0'; /* over the line end, or the NUL behind all */
	g->user[g->users++] = (struct auth_user){.name = {.at = line.at, .length = length}, .hash = hash};
	return NULL;
}

/* What is wrong in *number, the line; NULL: nothing. */
static const char *parse(struct realm *g, size_t length, unsigned *number) {
	struct slice rest = rules_text((struct slice){.at = g->text, .length = length}), line;
	unsigned ends = 0;
	*number = 1;
	if (!rules_next_line(&rest, &g->realm) || !g->realm.length)
		return "the first line has to be the realm; nobody gets in";
	if (g->realm.length > AUTH_REALM_MAX || chars_text(g->realm.at, g->realm.length) != g->realm.length)
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

static uint64_t id_of(const struct auth_file *f, const char *text, size_t length) {
	const uint64_t key[] = {(uint64_t)f->device, (uint64_t)f->inode};
	unsigned char digest[DIGEST];
	unsigned size = DIGEST;
	uint64_t id;
	HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)text, length, digest, &size);
	memcpy(&id, digest, sizeof id);
	return id;
}

/* Takes text over; NULL: it cannot be read. NULL: ENOMEM. */
static struct realm *realm_new(const struct auth_file *f, const char *path, char *text, size_t length) {
	struct realm *g = calloc(1, sizeof *g);
	unsigned line = 0;
	if (!g) {
		free(text);
		return NULL;
	}
	g->references = 1;
	g->id = text ? id_of(f, text, length) : 0;
	g->text = text;
	g->passes = !text && docroot_error_is_temporary(f->file.error);
	const char *wrong = text ? parse(g, length, &line) : unreadable;
	if (!wrong) return g;
	text_file_complain(&f->file, path, line, wrong);
	free(g->text);
	g->text = NULL;
	g->users = 0;
	return g;
}

static void forget(struct basic_auth *auth, struct auth_file **link) {
	struct auth_file *f = *link;
	*link = f->next;
	realm_release(f->realm);
	free(f);
	auth->files--;
}

void basic_auth_free(struct basic_auth *auth) {
	if (!auth) return;
	for (int i = 0; i < BUCKETS; i++)
		while (auth->bucket[i]) forget(auth, &auth->bucket[i]);
	OPENSSL_cleanse(auth, sizeof *auth);
	free(auth);
}

/* Room for one more: who uses a realm holds a reference. */
static void evict(struct basic_auth *auth) {
	while (auth->files >= AUTH_REALMS_MAX) {
		struct auth_file **link = &auth->bucket[auth->evicting++ % BUCKETS];
		if (*link) forget(auth, link);
	}
}

/* Nobody gets in where it cannot be seen what a realm says, for a moment or for longer. */
static struct realm *locked(struct basic_auth *auth, int error) {
	struct realm *g = docroot_error_is_temporary(error) ? &auth->unsure : &auth->locked;
	realm_retain(g);
	return g;
}

/* The file with that inode; NULL: no memory. */
static struct auth_file **find(struct basic_auth *auth, const struct stat *st) {
	const uint64_t key[] = {(uint64_t)st->st_dev, (uint64_t)st->st_ino};
	struct slice octets = {.at = (const char *)key, .length = sizeof key};
	struct auth_file **link = &auth->bucket[hash_octets(0, octets) % BUCKETS];
	while (*link && !((*link)->device == st->st_dev && (*link)->inode == st->st_ino)) link = &(*link)->next;
	if (*link) return link;
	evict(auth);
	link = &auth->bucket[hash_octets(0, octets) % BUCKETS];
	struct auth_file *f = calloc(1, sizeof *f);
	if (!f) return NULL;
	*f = (struct auth_file){.device = st->st_dev, .inode = st->st_ino, .next = *link};
	*link = f;
	auth->files++;
	return link;
}

struct realm *basic_auth_find(struct basic_auth *auth, const char *path) {
	static const struct text_file unknown;
	struct stat st;
	if (docroot_lstat(auth->docroot, path, &st) == -1)
		return errno == ENOENT || errno == ENOTDIR ? NULL : locked(auth, errno);
	if (docroot_stat(auth->docroot, path, &st) == -1) { /* a link that leads nowhere, or out */
		int error = errno;
		if (!docroot_error_is_temporary(error)) text_file_complain(&unknown, path, 0, unreadable);
		return locked(auth, error);
	}
	struct auth_file **link = find(auth, &st);
	if (!link) return locked(auth, ENOMEM);
	struct auth_file *f = *link;
	char *text;
	size_t length;
	enum text_state state = text_file_look(&f->file, auth->docroot, path, &text, &length);
	if (state == TEXT_NEW && f->realm && f->realm->id == id_of(f, text, length)) {
		free(text); /* it has been touched */
	} else if (state != TEXT_SAME) {
		realm_release(f->realm);
		f->realm = realm_new(f, path, text, length);
	}
	if (!f->realm) {
		forget(auth, link);
		return locked(auth, ENOMEM);
	}
	realm_retain(f->realm);
	return f->realm;
}

void basic_auth_realms(struct basic_auth *auth, struct slice file, struct realm **realm) {
	static const char here[] = ".htaccess", below[] = ".htaccess_global";
	char path[PATH_MAX + sizeof below];
	size_t n = file.length;
	while (n && file.at[n - 1] != '/') n--;
	realm[0] = realm[1] = NULL;
	if (n >= PATH_MAX) return;
	if (n) memcpy(path, file.at, n);
	const char *slash = memchr(path, '/', n);
	size_t first = slash ? (size_t)(slash + 1 - path) : 0;
	while (true) { /* as Apache's do, the nearest one replaces those above */
		memcpy(path + n, here, sizeof here);
		realm[0] = basic_auth_find(auth, path);
		if (realm[0] || !n) break;
		for (n--; n && path[n - 1] != '/';) n--;
	}
	if (!first) return;
	memcpy(path, file.at, first);
	memcpy(path + first, below, sizeof below);
	realm[1] = basic_auth_find(auth, path);
}

/* --- who asks --- */

/* RFC 7617, section 2: the name into auth->user, NUL-terminated, with the password behind it. NULL: there is none that
 * could be right. */
static char *decode(struct basic_auth *auth, const struct request *r) {
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
	memcpy(auth->user, decoded, (size_t)n);
	OPENSSL_cleanse(decoded, sizeof decoded);
	auth->user[n] = '\0';
	char *colon = strchr(auth->user, ':');
	if (!colon || colon - auth->user > AUTH_USER_MAX || strlen(colon + 1) > AUTH_PASSWORD_MAX) return NULL;
	*colon = '\0';
	return colon + 1;
}

/* Stands for a name and password at this state of a file. */
static void make_digest(struct basic_auth *auth, const struct realm *g, const char *password, unsigned char *digest) {
	unsigned char key[SECRET + sizeof g->id];
	size_t length = (size_t)(password - auth->user) + strlen(password); /* they lie side by side */
	unsigned size = DIGEST;
	memcpy(key, auth->secret, SECRET);
	memcpy(key + SECRET, &g->id, sizeof g->id);
	HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)auth->user, length, digest, &size);
}

static struct known_password *known_of(struct known_password *table, size_t size, const unsigned char *digest) {
	uint32_t index;
	memcpy(&index, digest, sizeof index);
	return &table[index % size];
}

static bool is_known(struct known_password *table, size_t size, const unsigned char *digest) {
	const struct known_password *k = known_of(table, size, digest);
	return k->used && CRYPTO_memcmp(k->digest, digest, DIGEST) == 0;
}

static void note_known(struct known_password *table, size_t size, const unsigned char *digest) {
	struct known_password *k = known_of(table, size, digest);
	memcpy(k->digest, digest, DIGEST);
	k->used = true;
}

/* --- checking --- */

static void check_password(struct job *job, const atomic_bool *stop) {
	struct password_check *c = (struct password_check *)job;
	char hash[PLATFORM_CRYPT_ROOM];
	if (atomic_load(stop) || c->given_up || !platform_crypt(c->password, c->hash, hash)) return;
	size_t length = strlen(hash);
	c->right = strlen(c->hash) == length && CRYPTO_memcmp(hash, c->hash, length) == 0;
	OPENSSL_cleanse(hash, sizeof hash);
}

static void checking_free(struct password_check *c) {
	free(c->hash);
	OPENSSL_cleanse(c, sizeof *c);
	free(c);
}

static void start_next(struct basic_auth *auth);

/* Whether those whom it was for have gone. */
static bool unwanted(const struct password_check *c) { return !c->started && atomic_load(&c->job.unwanted); }

/* Drops those that nobody waits for any more. */
static void sweep(struct basic_auth *auth) {
	for (struct password_check **link = &auth->checking; *link;) {
		struct password_check *c = *link;
		if (!unwanted(c)) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		auth->checks--;
		checking_free(c);
	}
}

static void password_checked(struct job *job) {
	struct password_check *c = (struct password_check *)job, **link = &c->auth->checking;
	struct basic_auth *auth = c->auth;
	while (*link != c) link = &(*link)->next;
	*link = c->next;
	auth->checks--;
	if (!c->given_up) auth->busy = false;
	if (c->given_up || !job->ran) { /* nobody waits for it any more, or somebody else came first */
		checking_free(c);
	} else {
		if (c->right && !c->nobody) {
			note_known(auth->right, AUTH_KNOWN, c->digest);
			attempts_give_back(&c->address); /* it has not been used up */
		} else {
			note_known(auth->wrong, AUTH_WRONG, c->digest);
		}
		checking_free(c);
	}
	sweep(auth);
	start_next(auth);
}

/* One after the other: first those at addresses that have tried least, so that who guesses waits for who does not; of
 * these the one that came first. */
static void start_next(struct basic_auth *auth) {
	struct password_check *next = NULL;
	unsigned least = 0;
	if (auth->busy) return;
	for (struct password_check *c = auth->checking; c; c = c->next) {
		unsigned used = attempts_used(&c->address, auth->now_ms);
		if (c->started || (next && used > least)) continue; /* the newest are in front */
		next = c;
		least = used;
	}
	if (!next) return;
	next->started = true;
	auth->busy = jobs_add(auth->jobs, &next->job);
	next->started = auth->busy; /* else with the next that comes */
}

/* When all places are taken: gives that of the one who has tried most to an address that has tried less. false: there
 * is none. */
static bool make_place(struct basic_auth *auth, const struct peer *address) {
	struct password_check *worst = NULL;
	unsigned most = attempts_used(address, auth->now_ms) + 1; /* with the one to come */
	for (struct password_check *c = auth->checking; c; c = c->next) {
		unsigned used = attempts_used(&c->address, auth->now_ms);
		if (c->started || used <= most) continue;
		worst = c;
		most = used;
	}
	if (!worst) return false;
	worst->started = worst->given_up = true;
	if (jobs_add(auth->jobs, &worst->job)) return true; /* which tells who waits */
	worst->started = worst->given_up = false;
	return false;
}

static const struct auth_user *find_user(const struct realm *g, const char *name) {
	struct slice asked = {.at = name, .length = strlen(name)};
	for (unsigned i = 0; i < g->users; i++)
		if (slice_equal(g->user[i].name, asked)) return &g->user[i];
	return NULL;
}

static struct password_check *start_checking(struct basic_auth *auth, const struct realm *g, const char *password,
											 const unsigned char *digest, const struct peer *peer) {
	const struct auth_user *user = find_user(g, auth->user);
	struct password_check *c = calloc(1, sizeof *c);
	if (!c) return NULL;
	c->job = (struct job){.run = check_password, .finish = password_checked};
	c->auth = auth;
	c->address = attempts_address(peer);
	c->nobody = !user;
	memcpy(c->digest, digest, DIGEST);
	memcpy(c->password, password, strlen(password) + 1);
	c->hash = strdup(user ? user->hash : g->user[0].hash);
	if (!c->hash) {
		checking_free(c);
		return NULL;
	}
	c->next = auth->checking;
	auth->checking = c;
	auth->checks++;
	return c;
}

/* How many are under way for somebody at that address. */
static unsigned checks_of(const struct basic_auth *auth, const struct peer *address) {
	unsigned n = 0;
	for (const struct password_check *c = auth->checking; c; c = c->next)
		n += !c->given_up && memcmp(&c->address, address, sizeof *address) == 0;
	return n;
}

static enum auth_result ask(struct basic_auth *auth, const struct realm *g, struct auth_answer *a) {
	char *at = auth->lines;
	at += fmt_str(at, "WWW-Authenticate: Basic realm=\"");
	for (size_t i = 0; i < g->realm.length; i++) {
		if (g->realm.at[i] == '"' || g->realm.at[i] == '\\') *at++ = '\\';
		*at++ = g->realm.at[i];
	}
	at += fmt_str(at, "\", charset=\"UTF-8\"\r\n");
	a->lines = (struct slice){.at = auth->lines, .length = (size_t)(at - auth->lines)};
	return AUTH_REQUIRED;
}

enum auth_result basic_auth_check(struct basic_auth *auth, struct realm *g, const struct request *r,
								  const struct peer *peer, bool patient, int64_t now_ms, struct auth_answer *a) {
	unsigned char digest[DIGEST];
	struct peer address = attempts_address(peer);
	*a = (struct auth_answer){0};
	auth->now_ms = now_ms;
	if (!g->text) return g->passes ? AUTH_BUSY : AUTH_FORBIDDEN;
	if (!request_has(r, FIELD_AUTHORIZATION)) return ask(auth, g, a);
	const char *password = decode(auth, r);
	if (!password || !g->users) return ask(auth, g, a);
	if (!auth->has_secret && RAND_bytes(auth->secret, sizeof auth->secret) != 1) return AUTH_BUSY;
	auth->has_secret = true;
	make_digest(auth, g, password, digest);
	if (is_known(auth->wrong, AUTH_WRONG, digest)) return ask(auth, g, a);
	if (is_known(auth->right, AUTH_KNOWN, digest)) {
		a->user = (struct slice){.at = auth->user, .length = strlen(auth->user)};
		return AUTH_ADMITTED;
	}
	sweep(auth);
	struct password_check *c = auth->checking;
	while (c && (c->given_up || CRYPTO_memcmp(c->digest, digest, DIGEST) != 0)) c = c->next;
	if (!patient) return AUTH_BUSY;
	if (!c && checks_of(auth, &address) >= AUTH_CHECKS_EACH) return AUTH_BUSY;
	if (!c && auth->checks >= AUTH_CHECKS && !make_place(auth, &address)) return AUTH_BUSY;
	if (!c && !attempts_take(peer, now_ms)) {
		a->lines = SLICE("Retry-After: 3\r\n");
		return AUTH_LIMITED;
	}
	if (!c && !(c = start_checking(auth, g, password, digest, peer))) return AUTH_BUSY;
	start_next(auth);
	a->job = &c->job;
	if (auth->busy) return AUTH_PENDING;
	atomic_store(&c->job.unwanted, !c->job.waiters); /* there is no thread: to be swept */
	return AUTH_BUSY;
}
