/* basic_auth.c - see basic_auth.h. */
#include "gatling/site/access/basic_auth.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/site/access/password_cost.h"

enum {
	CREDENTIALS_MAX = AUTH_USER_MAX + 1 + AUTH_PASSWORD_MAX,
	CREDENTIALS_ROOM = (CREDENTIALS_MAX + 2) / 3 * 3 /* whole groups of three, as base64 is decoded */
};

struct basic_auth {
	const struct tree *tree;
	struct names *names;
	struct password_checks *checks;
	struct realms *realms;
	char user[CREDENTIALS_ROOM + 1]; /* the credentials of the last request: see decode() */
	char lines[AUTH_LINES_MAX];
};

void guard_release(struct guard *guard) {
	for (int i = 0; i < GUARD_PARTS; i++) realm_release(guard->realm[i]);
	*guard = (struct guard){0};
}

struct basic_auth *basic_auth_new(const struct tree *tree, struct names *names, struct jobs *jobs) {
	struct basic_auth *auth = calloc(1, sizeof *auth);
	if (!auth || !(auth->checks = password_checks_new(jobs)) || !(auth->realms = realms_new(tree, !jobs))) {
		basic_auth_free(auth);
		return NULL;
	}
	auth->tree = tree;
	auth->names = names;
	return auth;
}

void basic_auth_free(struct basic_auth *auth) {
	if (!auth) return;
	realms_free(auth->realms);
	password_checks_free(auth->checks);
	OPENSSL_cleanse(auth, sizeof *auth);
	free(auth);
}

void basic_auth_set_root(struct basic_auth *auth, const char *path, const char *name) {
	realms_set_root(auth->realms, path, name);
}

/* --- guards --- */

/* Returns whether the directory of the file at path cannot exist, or does not. */
static bool lacks_directory(const struct basic_auth *auth, const char *path) {
	char directory[PATH_MAX] = ".";
	struct stat st;
	const char *slash = strrchr(path, '/');
	const size_t length = slash ? (size_t)(slash - path) : sizeof directory;
	if (length >= sizeof directory) return slash;
	*text_copy(directory, (struct slice){.at = path, .length = length}) = '\0';
	return tree_stat(auth->tree, directory, &st) == -1 &&
		   (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG);
}

/* Finds the realm of the file at path, with a reference. Returns whether there is no file: only then *realm is NULL.
 * lately: as for basic_auth_guard(). */
static bool has_no_realm(struct basic_auth *auth, const char *path, bool lately, struct realm **realm) {
	struct stat st;
	*realm = NULL;
	/* of a file with a longer path nothing is found out, also if its directory can be read */
	const bool reachable = strlen(path) < PATH_MAX;
	if (reachable && (lately ? names_lacked_lately : names_lack)(auth->names, slice_of(path))) return true;
	tree_expect(auth->tree, path, REMOTE_READ);
	int error = tree_lstat(auth->tree, path, &st) == -1 ? errno : 0;
	if (error == ENOENT || error == ENOTDIR || (error == ENAMETOOLONG && lacks_directory(auth, path))) return true;
	if (error) *realm = realms_unreadable(auth->realms, NULL, error);
	else if (tree_stat(auth->tree, path, &st) == 0) *realm = realms_find(auth->realms, path, &st);
	else *realm = realms_unreadable(auth->realms, path, errno); /* a symlink to nowhere, or out of the root */
	return false;
}

/* Has a guard deny access, for the sake of a realm. */
static void deny(struct guard *guard, const struct realm *realm) {
	guard->temporary =
		realm->state == REALM_UNAVAILABLE && (guard->permission != PERMISSION_DENIED || guard->temporary);
	guard->permission = PERMISSION_DENIED;
}

/* Adds what a rule of a realm says to a guard. Takes the reference over. */
static void add_part(struct guard *guard, enum guard_part part, struct realm *realm, unsigned rule) {
	guard->realm[part] = realm;
	guard->rule[part] = rule;
	if (guard->permission == PERMISSION_OPEN) guard->permission = PERMISSION_REALM;
	if (realm->state != REALM_GOOD) deny(guard, realm);
}

/* Adds the file at path, in gatling's own format, as a part of a guard, if it exists. */
static void add_own(struct basic_auth *auth, struct guard *guard, enum guard_part part, const char *path, bool lately) {
	struct realm *realm;
	if (has_no_realm(auth, path, lately, &realm)) return;
	add_part(guard, part, realm, 0);
	if (realm->rules.of_apache) guard->permission = PERMISSION_DENIED; /* it is a link to a .htaccess */
}

struct guard basic_auth_of_files(struct basic_auth *auth, const char *path, const char *above) {
	struct guard guard = {.permission = PERMISSION_OPEN};
	if (above) add_own(auth, &guard, GUARD_TESTS, above, false);
	add_own(auth, &guard, GUARD_SITE, path, false);
	return guard;
}

/* The rules of the .htaccess on a path that count for a name. Those of a section <Files> come before those of any
 * directory, of these the inner ones. */
struct chosen {
	struct realm *realm;
	unsigned rule;
	bool below; /* a .htaccess further down says where passwords are */
};

static void choose(struct chosen *chosen, struct realm *realm, unsigned rule, bool below) {
	if (!chosen->realm) *chosen = (struct chosen){.realm = realm, .rule = rule, .below = below};
}

/* Chooses the rules of a .htaccess. */
static void choose_rules(struct chosen chosen[2][GUARD_SITE], struct realm *realm, struct slice name, bool below) {
	for (unsigned i = realm->rules.count; i-- > 0;) {
		const struct access_rule *rule = &realm->rules.rule[i];
		if (!access_matches(rule, name)) continue;
		if (rule->order.given) choose(&chosen[!i][GUARD_ORDER], realm, i, below);
		if (rule->tests) choose(&chosen[!i][GUARD_TESTS], realm, i, below);
	}
}

/* Returns whether a rule says the same to everybody: then *granted is what. */
static bool is_constant(const struct access_rule *rule, enum guard_part part, bool *granted) {
	const struct access_client nobody = {.gets = true};
	*granted = part == GUARD_ORDER ? access_ordered(rule, &nobody) : access_tested(rule, &nobody) == ACCESS_GRANTED;
	return !access_depends_on_client(rule);
}

/* Adds what has been chosen to a guard. */
static void add_chosen(struct guard *guard, struct chosen chosen[2][GUARD_SITE]) {
	const struct chosen *order = &chosen[!chosen[0][GUARD_ORDER].realm][GUARD_ORDER];
	const struct chosen *tests = &chosen[!chosen[0][GUARD_TESTS].realm][GUARD_TESTS];
	guard->any = order->realm && tests->realm && order->realm->rules.rule[order->rule].order.satisfy_any;
	for (int part = GUARD_ORDER; part < GUARD_SITE; part++) {
		const struct chosen *c = part == GUARD_ORDER ? order : tests;
		if (!c->realm) continue;
		const struct access_rule *rule = &c->realm->rules.rule[c->rule];
		bool granted;
		if (!guard->any && is_constant(rule, (enum guard_part)part, &granted) && granted) continue;
		c->realm->references++;
		add_part(guard, (enum guard_part)part, c->realm, c->rule);
		/* with a password of which it says nothing itself */
		if (!c->below || !access_depends_on_user(rule)) continue;
		realm_complain(c->realm,
					   "a .htaccess further down gives AuthName or AuthUserFile, but what is required is said here, "
					   "so access is denied there: say it there, too");
		guard->permission = PERMISSION_DENIED;
	}
}

/* The .htaccess of Apache on a path, the inner ones first. */
struct found {
	struct realm *realm[GUARD_FILES_MAX];
	unsigned count;
	struct chosen chosen[2][GUARD_SITE]; /* 0: of sections, 1: of directories */
	bool passwords;                      /* one of them says where passwords are */
	bool listed;                         /* one of them says whether there are listings */
};

/* Takes a .htaccess into account. Takes its reference over. Returns whether those above it count, too. */
static bool take_file(struct guard *guard, struct found *found, struct realm *realm, struct slice name) {
	if (found->count == GUARD_FILES_MAX)
		realm_complain(realm, "there are too many of them further down, so access is denied there");
	if (realm->state != REALM_GOOD || found->count == GUARD_FILES_MAX) {
		deny(guard, realm);
		realm_release(realm);
		return false;
	}
	if (!found->count) {
		memset(found->chosen, 0, sizeof found->chosen);
		found->passwords = found->listed = false;
	}
	found->realm[found->count++] = realm;
	/* of a line break in a name, regular expressions think differently */
	if (memchr(name.at, '\n', name.length) && realm->rules.count > 1) guard->permission = PERMISSION_DENIED;
	choose_rules(found->chosen, realm, name, found->passwords);
	if (!realm->rules.of_apache) return false;
	found->passwords |= realm->rules.users.at || realm->rules.realm.at;
	if (!found->listed) guard->unlisted |= realm->rules.unlisted;
	found->listed |= realm->rules.listed || realm->rules.unlisted;
	guard->by_name |= realm->rules.count > 1;
	guard->unlisted |= guard->by_name; /* a listing would have names that may be closed */
	return true;
}

struct guard basic_auth_guard(struct basic_auth *auth, struct slice file, bool lately) {
	static const char here[] = ".htaccess", below[] = ".htaccess_global";
	char path[PATH_MAX + sizeof below];
	struct guard guard = {.permission = PERMISSION_OPEN};
	struct found found; /* most paths have none, so not all of it is set to zero */
	struct realm *realm;
	found.count = 0;
	size_t n = names_reach(auth->names, file);
	while (n >= PATH_MAX || (n && file.at[n - 1] != '/')) n--; /* a longer path is one of no directory */
	if (n) memcpy(path, file.at, n);
	const struct slice name = slice_rest(file, n);
	const char *slash = memchr(path, '/', n);
	size_t first = slash ? (size_t)(slash + 1 - path) : 0;
	while (true) {
		memcpy(path + n, here, sizeof here);
		if (!has_no_realm(auth, path, lately, &realm) && !take_file(&guard, &found, realm, name)) break;
		if (!n) break;
		for (n--; n && path[n - 1] != '/';) n--;
	}
	if (found.count) add_chosen(&guard, found.chosen);
	for (unsigned i = 0; i < found.count; i++) realm_release(found.realm[i]);
	if (!first) return guard;
	memcpy(path, file.at, first);
	memcpy(path + first, below, sizeof below);
	add_own(auth, &guard, GUARD_SITE, path, lately);
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
	const struct slice name = realm->rules.realm;
	char *at = text_copy(auth->lines, SLICE("WWW-Authenticate: Basic realm=\""));
	for (size_t i = 0; i < name.length; i++) {
		if (name.at[i] == '"' || name.at[i] == '\\') *at++ = '\\';
		*at++ = name.at[i];
	}
	at = text_copy(at, SLICE("\", charset=\"UTF-8\"\r\n"));
	a->lines = (struct slice){.at = auth->lines, .length = (size_t)(at - auth->lines)};
	return AUTH_REQUIRED;
}

/* Finds out whether the hashes of a realm may be checked. Returns whether that is not known yet: then *result is what
 * to do. */
static bool waits_for_costs(struct basic_auth *auth, struct realm *realm, bool may_wait, struct auth_answer *a,
							enum auth_result *result) {
	if (realm_is_known(realm)) return false;
	a->job = may_wait ? password_measure(auth->checks, realm->kinds) : NULL;
	*result = a->job ? AUTH_PENDING : AUTH_BUSY;
	return true;
}

/* Checks the password of a request. */
static enum auth_result check(struct basic_auth *auth, const struct realm *realm, const struct request *r,
							  const struct peer *peer, bool may_wait, int64_t now_ms, struct auth_answer *a) {
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
	if (result == AUTH_ADMITTED || result == AUTH_REQUIRED || result == AUTH_LIMITED) a->user = slice_of(auth->user);
	if (result == AUTH_LIMITED) a->lines = SLICE("Retry-After: 3\r\n");
	return result == AUTH_REQUIRED ? require(auth, realm, a) : result;
}

enum auth_result basic_auth_check(struct basic_auth *auth, const struct guard *guard, enum guard_part part,
								  const struct request *r, const struct auth_client *from, bool may_wait,
								  int64_t now_ms, struct auth_answer *a) {
	struct realm *realm = guard->realm[part];
	struct access_client client = {.peer = from->is_known && !peer_is_unix(from->peer) ? from->peer : NULL,
								   .gets = r->method <= METHOD_HEAD};
	enum auth_result unknown;
	*a = (struct auth_answer){0};
	if (waits_for_costs(auth, realm, may_wait, a, &unknown)) return unknown;
	if (realm->state != REALM_GOOD) return realm->state == REALM_UNAVAILABLE ? AUTH_BUSY : AUTH_FORBIDDEN;
	const struct access_rule *rule = &realm->rules.rule[guard->rule[part]];
	if (part == GUARD_ORDER) return access_ordered(rule, &client) ? AUTH_ADMITTED : AUTH_FORBIDDEN;
	const enum access_verdict verdict = access_tested(rule, &client);
	if (verdict == ACCESS_GRANTED) return AUTH_ADMITTED;
	if (verdict != ACCESS_NEEDS_USER) return AUTH_FORBIDDEN;
	const enum auth_result result = check(auth, realm, r, from->peer, may_wait, now_ms, a);
	if (result != AUTH_ADMITTED) return result;
	client.user = a->user;
	return access_tested(rule, &client) == ACCESS_GRANTED ? AUTH_ADMITTED : require(auth, realm, a);
}
