/* basic_auth.c - see basic_auth.h. */
#include "gatling/site/basic_auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "gatling/base/hash.h"
#include "gatling/base/platform.h"
#include "gatling/base/text.h"
#include "gatling/http/chars.h"
#include "gatling/site/password_check.h"
#include "gatling/site/password_cost.h"
#include "gatling/site/rules/rules.h"
#include "gatling/site/rules/text_file.h"

static const char dear[] =
	"to check this hash takes more than 0.5 s of processor time or 256 MB here, or an unknown time, "
	"so access is denied: make one that is cheaper (htpasswd -nB USER)";
static const char unreadable[] = "this is no file that the user of the server may read, so access is denied";

enum {
	DIGEST = 32,
	CREDENTIALS_MAX = AUTH_USER_MAX + 1 + AUTH_PASSWORD_MAX,
	CREDENTIALS_ROOM = (CREDENTIALS_MAX + 2) / 3 * 3 /* whole groups of three, as base64 is decoded */
};

struct realm {
	unsigned references;
	uint64_t id; /* of the content: while that stays the same, clients need not authenticate again */
	char *text;  /* of the file; NULL: nobody is admitted */
	struct slice name;
	struct slice users; /* their lines: there may be a megabyte of them, so nothing else is kept */
	size_t length;      /* of the text */
	unsigned kinds;     /* of hashes that are not measured (password_cost.h): until then it is not known whether the
						   realm is good */
	uint64_t owner;     /* see struct password_question */
	struct text_file file;
	char *path;
};

/* A file, by its inode: several paths may lead to it. */
struct auth_file {
	struct text_file file;
	struct realm *realm;
	dev_t device;
	ino_t inode;
};

struct basic_auth {
	const struct docroot *docroot;
	struct names *names;
	struct jobs *jobs; /* NULL: all that takes long is done at once */
	struct password_checks *checks;
	struct realm denied, unavailable; /* of files that cannot be read; never freed */
	struct auth_file file[AUTH_REALMS_MAX];
	unsigned found;                  /* files found; when all places are taken, the next one replaces the oldest */
	char user[CREDENTIALS_ROOM + 1]; /* the credentials of the last request: see decode() */
	char lines[AUTH_LINES_MAX];
};

static void realm_release(struct realm *realm) {
	if (!realm || --realm->references) return;
	free(realm->text);
	free(realm->path);
	free(realm);
}

void guard_release(struct guard *guard) {
	for (int i = 0; i < REALMS_OF_PATH; i++) realm_release(guard->realm[i]);
	*guard = (struct guard){0};
}

struct basic_auth *basic_auth_new(const struct docroot *docroot, struct names *names, struct jobs *jobs) {
	struct basic_auth *auth = calloc(1, sizeof *auth);
	if (!auth || !(auth->checks = password_checks_new(jobs))) {
		free(auth);
		return NULL;
	}
	auth->docroot = docroot;
	auth->names = names;
	auth->jobs = jobs;
	auth->denied.references = auth->unavailable.references = 1;
	return auth;
}

/* --- the files --- */

/* Returns whether a text can be a hash of crypt(3): "$ID$..." or "_...", or the 13 characters of DES; or, as in
 * crypt(5), "*" or "!" for a user who may not log in. */
static bool is_hash(struct slice text) {
	static const size_t des = 13;
	if (text.length && (text.at[0] == '*' || text.at[0] == '!')) return true;
	return text.length >= des && (text.length == des || text.at[0] == '$' || text.at[0] == '_') &&
		   !memchr(text.at, ' ', text.length);
}

/* Returns whether a realm is a line USER:HASH, whose hash clients would be shown. */
static bool is_user(struct slice realm) {
	const struct slice hash = slice_rest(realm, slice_until(realm, ':'));
	return hash.length > 1 && (hash.at[1] == '{' || is_hash(slice_rest(hash, 1)));
}

/* Checks a line USER:HASH. Returns NULL, or what is wrong. Adds the kind of the hash to *kinds if it has to be
 * measured. */
static const char *check_user(struct slice line, unsigned *kinds) {
	char text[PLATFORM_CRYPT_ROOM];
	const size_t length = slice_until(line, ':');
	if (length == line.length)
		return "this is not USER:HASH (directives of Apache are not understood), so access is denied";
	const struct slice hash = slice_rest(line, length + 1);
	if (length > AUTH_USER_MAX) return "the name is too long, so access is denied";
	if (slice_starts(hash, SLICE("{")) || slice_starts(hash, SLICE("$apr1$")))
		return "this hash is Apache's own, not crypt(3)'s (htpasswd -B makes one), so access is denied";
	if (!is_hash(hash) || hash.length >= sizeof text)
		return "this is no hash of crypt(3) (htpasswd -B makes one), so access is denied";
	*text_copy(text, hash) = '\0';
	return password_cost(text, PASSWORD_USUAL, kinds) == PASSWORD_DEAR ? dear : NULL;
}

/* Parses the text of a realm. Returns NULL, or what is wrong, with the line in *number. */
static const char *parse(struct realm *realm, unsigned *number) {
	struct slice rest = rules_text((struct slice){.at = realm->text, .length = realm->length}), line;
	bool any = false;
	*number = 0;
	realm->kinds = 0;
	if (!password_next_line(&rest, &realm->name, number)) {
		*number = 1;
		return "the first line has to be the realm, so access is denied";
	}
	if (is_user(realm->name)) return "this is USER:HASH where the realm has to be, so access is denied";
	if (realm->name.length > AUTH_REALM_MAX || chars_text(realm->name) != realm->name.length)
		return "this cannot be a realm, so access is denied";
	realm->users = rest;
	for (; password_next_line(&rest, &line, number); any = true) {
		const char *wrong = check_user(line, &realm->kinds);
		if (wrong) return wrong;
	}
	return any ? NULL : "there is no USER:HASH below the realm, so access is denied";
}

/* Makes an id of the content and inode of a file. Returns false without memory. */
static bool make_id(const struct auth_file *f, const char *text, size_t length, uint64_t *id) {
	const uint64_t key[] = {(uint64_t)f->device, (uint64_t)f->inode};
	unsigned char digest[DIGEST];
	if (!HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)text, length, digest, NULL)) return false;
	memcpy(id, digest, sizeof *id);
	return true;
}

/* Returns the realm of a file that cannot be read: access is denied, or answered with 503 if the error is temporary. */
static struct realm *unreadable_realm(struct basic_auth *auth, int error) {
	struct realm *realm = docroot_error_is_temporary(error) ? &auth->unavailable : &auth->denied;
	realm->references++;
	return realm;
}

/* Parses the text of a realm. If it is malformed, the realm denies access from now on. */
static void judge(struct realm *realm) {
	unsigned line;
	const char *wrong = parse(realm, &line);
	if (!wrong) return;
	text_file_complain(&realm->file, realm->path, line, wrong);
	free(realm->text);
	realm->text = NULL;
	realm->kinds = 0;
	realm->name = realm->users = SLICE("");
}

/* Returns the realm of a text, which it takes over. */
static struct realm *realm_new(struct basic_auth *auth, struct auth_file *f, const char *path, char *text,
							   size_t length) {
	uint64_t id;
	struct realm *realm = malloc(sizeof *realm);
	char *own_path = strdup(path);
	if (!realm || !own_path || !make_id(f, text, length, &id)) {
		text_file_again(&f->file);
		free(own_path);
		free(realm);
		free(text);
		return unreadable_realm(auth, ENOMEM);
	}
	const char *slash = strchr(path, '/');
	const struct slice owner = {.at = path, .length = slash ? (size_t)(slash - path) : 0};
	*realm = (struct realm){.references = 1,
							.id = id,
							.text = text,
							.length = length,
							.owner = hash_octets(0, owner),
							.file = f->file,
							.path = own_path};
	judge(realm);
	if (!auth->jobs && realm->kinds) { /* --check may wait */
		password_cost_measure(realm->kinds);
		judge(realm);
	}
	return realm;
}

void basic_auth_free(struct basic_auth *auth) {
	if (!auth) return;
	for (int i = 0; i < AUTH_REALMS_MAX; i++) realm_release(auth->file[i].realm);
	password_checks_free(auth->checks);
	OPENSSL_cleanse(auth, sizeof *auth);
	free(auth);
}

/* Returns the file with that inode. If it is new and all places are taken, it replaces the oldest, whose realm lasts as
 * long as its references. */
static struct auth_file *find_file(struct basic_auth *auth, const struct stat *st) {
	for (struct auth_file *f = auth->file; f < auth->file + AUTH_REALMS_MAX && f->realm; f++)
		if (f->device == st->st_dev && f->inode == st->st_ino) return f;
	struct auth_file *place = &auth->file[auth->found++ % AUTH_REALMS_MAX];
	realm_release(place->realm);
	*place = (struct auth_file){.device = st->st_dev, .inode = st->st_ino};
	return place;
}

/* Returns the realm of the file at path, whose inode is known, and reads it if it has changed. */
static struct realm *read_realm(struct basic_auth *auth, const char *path, const struct stat *st) {
	struct auth_file *f = find_file(auth, st);
	char *text;
	size_t length;
	enum text_state state = text_file_look(&f->file, auth->docroot, path, &text, &length);
	uint64_t id;
	if (state == TEXT_NEW && f->realm && make_id(f, text, length, &id) && f->realm->id == id) {
		free(text); /* only its times have changed */
	} else if (state != TEXT_SAME) {
		if (!text) text_file_complain(&f->file, path, 0, unreadable);
		realm_release(f->realm);
		f->realm = text ? realm_new(auth, f, path, text, length) : unreadable_realm(auth, f->file.error);
	}
	f->realm->references++;
	return f->realm;
}

/* Returns whether the directory of the file at path cannot exist, or does not. */
static bool lacks_directory(const struct basic_auth *auth, const char *path) {
	char directory[PATH_MAX] = ".";
	struct stat st;
	const char *slash = strrchr(path, '/');
	const size_t length = slash ? (size_t)(slash - path) : sizeof directory;
	if (length >= sizeof directory) return slash;
	*text_copy(directory, (struct slice){.at = path, .length = length}) = '\0';
	return docroot_stat(auth->docroot, directory, &st) == -1 &&
		   (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG);
}

/* Finds the realm of the file at path, with a reference. Returns whether there is no file: only then *realm is NULL.
 * lately: as for basic_auth_guard(). */
static bool has_no_realm(struct basic_auth *auth, const char *path, bool lately, struct realm **realm) {
	static const struct text_file unknown;
	struct stat st;
	*realm = NULL;
	/* of a file with a longer path nothing is found out, also if its directory can be read */
	const bool reachable = strlen(path) < PATH_MAX;
	if (reachable && (lately ? names_lacked_lately : names_lack)(auth->names, slice_of(path))) return true;
	int error = docroot_lstat(auth->docroot, path, &st) == -1 ? errno : 0;
	if (error == ENOENT || error == ENOTDIR || (error == ENAMETOOLONG && lacks_directory(auth, path))) return true;
	if (!error && docroot_stat(auth->docroot, path, &st) == -1) { /* a symlink to nowhere, or out of the root */
		error = errno;
		if (!docroot_error_is_temporary(error)) text_file_complain(&unknown, path, 0, unreadable);
	}
	*realm = error ? unreadable_realm(auth, error) : read_realm(auth, path, &st);
	return false;
}

/* Adds the i-th realm of a guard, that of the file at path. Returns whether there is a file. */
static bool add_realm(struct basic_auth *auth, struct guard *guard, int i, const char *path, bool lately) {
	struct realm *realm;
	if (has_no_realm(auth, path, lately, &realm)) return false;
	guard->realm[i] = realm;
	if (guard->permission == PERMISSION_OPEN) guard->permission = PERMISSION_REALM;
	if (realm->text) return true;
	guard->temporary = realm == &auth->unavailable && (guard->permission != PERMISSION_DENIED || guard->temporary);
	guard->permission = PERMISSION_DENIED;
	return true;
}

struct guard basic_auth_of_files(struct basic_auth *auth, const char *path, const char *above) {
	struct guard guard = {.permission = PERMISSION_OPEN};
	if (above) (void)add_realm(auth, &guard, 0, above, false);
	(void)add_realm(auth, &guard, 1, path, false);
	return guard;
}

struct guard basic_auth_guard(struct basic_auth *auth, struct slice file, bool lately) {
	static const char here[] = ".htaccess", below[] = ".htaccess_global";
	char path[PATH_MAX + sizeof below];
	struct guard guard = {.permission = PERMISSION_OPEN};
	size_t n = names_reach(auth->names, file);
	while (n >= PATH_MAX || (n && file.at[n - 1] != '/')) n--; /* a longer path is one of no directory */
	if (n) memcpy(path, file.at, n);
	const char *slash = memchr(path, '/', n);
	size_t first = slash ? (size_t)(slash + 1 - path) : 0;
	while (true) { /* the nearest file replaces those above it, as Apache's do */
		memcpy(path + n, here, sizeof here);
		if (add_realm(auth, &guard, 0, path, lately) || !n) break;
		for (n--; n && path[n - 1] != '/';) n--;
	}
	if (!first) return guard;
	memcpy(path, file.at, first);
	memcpy(path + first, below, sizeof below);
	(void)add_realm(auth, &guard, 1, path, lately);
	return guard;
}

/* --- credentials --- */

/* Decodes the credentials (RFC 7617, section 2): writes the name to auth->user, NUL-terminated, and the password behind
 * it. Returns the password, or NULL if the credentials cannot be right. */
static char *decode(struct basic_auth *auth, const struct request *r) {
	struct slice field = request_field(r, FIELD_AUTHORIZATION);
	struct slice scheme = SLICE("Basic ");
	if (request_repeats(r, FIELD_AUTHORIZATION) || !slice_starts_nocase(field, scheme)) return NULL;
	field = slice_trim(slice_rest(field, scheme.length));
	if (!field.length || field.length > CREDENTIALS_ROOM / 3 * 4 || field.length % 4) return NULL;
	int n = EVP_DecodeBlock((unsigned char *)auth->user, (const unsigned char *)field.at, (int)field.length);
	for (size_t end = field.length; n > 0 && end > 0 && field.at[end - 1] == '='; end--) n--;
	if (n <= 0 || n > CREDENTIALS_MAX || memchr(auth->user, '\0', (size_t)n)) return NULL;
	auth->user[n] = '\0';
	char *colon = strchr(auth->user, ':');
	if (!colon || colon - auth->user > AUTH_USER_MAX || strlen(colon + 1) > AUTH_PASSWORD_MAX) return NULL;
	*colon = '\0';
	return colon + 1;
}

/* --- checking --- */

static enum auth_result require(struct basic_auth *auth, const struct realm *realm, struct auth_answer *a) {
	char *at = text_copy(auth->lines, SLICE("WWW-Authenticate: Basic realm=\""));
	for (size_t i = 0; i < realm->name.length; i++) {
		if (realm->name.at[i] == '"' || realm->name.at[i] == '\\') *at++ = '\\';
		*at++ = realm->name.at[i];
	}
	at = text_copy(at, SLICE("\", charset=\"UTF-8\"\r\n"));
	a->lines = (struct slice){.at = auth->lines, .length = (size_t)(at - auth->lines)};
	return AUTH_REQUIRED;
}

/* Finds out whether the hashes of a realm may be checked. Returns whether that is not known yet: then *result is what
 * to do. */
static bool waits_for_costs(struct basic_auth *auth, struct realm *realm, bool may_wait, struct auth_answer *a,
							enum auth_result *result) {
	if (realm->kinds && password_cost_measured(realm->kinds)) judge(realm);
	if (!realm->kinds) return false;
	a->job = may_wait ? password_measure(auth->checks, realm->kinds) : NULL;
	*result = a->job ? AUTH_PENDING : AUTH_BUSY;
	return true;
}

enum auth_result basic_auth_check(struct basic_auth *auth, struct realm *realm, const struct request *r,
								  const struct peer *peer, bool may_wait, int64_t now_ms, struct auth_answer *a) {
	enum auth_result unknown;
	*a = (struct auth_answer){0};
	if (waits_for_costs(auth, realm, may_wait, a, &unknown)) return unknown;
	if (!realm->text) return realm == &auth->unavailable ? AUTH_BUSY : AUTH_FORBIDDEN;
	const char *password = request_has(r, FIELD_AUTHORIZATION) ? decode(auth, r) : NULL;
	if (!password) return require(auth, realm, a);
	const struct password_question question = {.realm = realm->id,
											   .owner = realm->owner,
											   .users = realm->users,
											   .user = auth->user,
											   .password = password,
											   .network = peer_network(peer),
											   .may_wait = may_wait,
											   .now_ms = now_ms};
	const enum auth_result result = password_check(auth->checks, &question, &a->job);
	if (result == AUTH_ADMITTED) a->user = slice_of(auth->user);
	if (result == AUTH_LIMITED) a->lines = SLICE("Retry-After: 3\r\n");
	return result == AUTH_REQUIRED ? require(auth, realm, a) : result;
}
