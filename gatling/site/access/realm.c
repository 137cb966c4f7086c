/* realm.c - see realm.h. */
#include "gatling/site/access/realm.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "gatling/base/lines.h"
#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/site/access/apache.h"
#include "gatling/site/access/password_cost.h"
#include "gatling/site/access/users.h"
#include "gatling/site/rules/rules.h"
#include "gatling/site/rules/text_file.h"

enum { DIGEST = 32 };

static const char unreadable[] = "this is no file that the user of the server may read, so access is denied";

/* What a realm was made from. */
struct realm_source {
	struct text_file file;
	char *path, *text, *users; /* malloc'd; users: the text of Apache's file of users, or NULL */
	size_t length;
};

/* A file, by its inode: several paths may lead to it. */
struct realm_file {
	struct text_file file, users;
	char users_path[ACCESS_FILE_MAX + 1]; /* of Apache's file of users; "": none */
	struct realm *realm;
	dev_t device;
	ino_t inode;
	uint64_t path; /* hash of the first path that led to it */
};

struct realms {
	const struct tree *tree;
	bool measures;
	const char *root[2];              /* names of the root */
	struct realm closed, unavailable; /* of files that cannot be read; never freed */
	struct realm_file file[AUTH_REALMS_MAX];
	unsigned found; /* places taken; when all are, the next file takes that of the oldest */
};

static void source_free(struct realm_source *s) {
	if (!s) return;
	free(s->path);
	free(s->text);
	free(s->users);
	free(s);
}

void realm_release(struct realm *realm) {
	if (!realm || --realm->references) return;
	access_rules_free(&realm->rules);
	source_free(realm->source);
	free(realm);
}

struct realms *realms_new(const struct tree *tree, bool measures) {
	struct realms *r = calloc(1, sizeof *r);
	if (!r) return NULL;
	r->tree = tree;
	r->measures = measures;
	r->closed.references = r->unavailable.references = 1;
	r->unavailable.state = REALM_UNAVAILABLE;
	return r;
}

void realms_free(struct realms *r) {
	for (int i = 0; r && i < AUTH_REALMS_MAX; i++) realm_release(r->file[i].realm);
	free(r);
}

void realms_set_root(struct realms *r, const char *path, const char *name) {
	r->root[0] = path;
	r->root[1] = name;
}

/* Returns the realm of files that cannot be read: access is denied, or answered with 503 if the error is temporary. */
static struct realm *realm_of_error(struct realms *r, int error) {
	struct realm *realm = docroot_error_is_temporary(error) ? &r->unavailable : &r->closed;
	realm->references++;
	return realm;
}

struct realm *realms_unreadable(struct realms *r, const char *path, int error) {
	static const struct text_file unknown;
	if (path && !docroot_error_is_temporary(error)) text_file_complain(&unknown, path, 0, unreadable);
	return realm_of_error(r, error);
}

void realm_complain(const struct realm *realm, const char *mistake) {
	if (realm->source) text_file_complain(&realm->source->file, realm->source->path, 0, mistake);
}

/* --- gatling's own format --- */

static bool add_allowed(struct access_rules *rules, struct slice text) {
	char address[PEER_MAX];
	struct peer_net net;
	if (text.length >= sizeof address) return false;
	*text_copy(address, text) = '\0';
	if (!peer_net_parse(address, &net) || peer_net_is_unix(&net)) return false;
	if (!rules->rule->tests &&
		(!access_add_test(rules->rule, ACCESS_ANY) || !access_add_test(rules->rule, ACCESS_NETS)))
		return false;
	return access_add_net(rules, &rules->rule->test[1].nets, &net);
}

/* Parses a realm, lines USER:HASH and lines "allow ADDRESS". Returns NULL, or what is wrong, with the line in
 * *number. */
static const char *parse_own(struct realm *realm, unsigned *number) {
	const struct realm_source *s = realm->source;
	struct lines lines = lines_of((struct slice){.at = s->text, .length = s->length});
	struct slice line, address;
	struct access_rules *rules = &realm->rules;
	unsigned users = 0;
	*number = 0;
	if (!access_add_rule(rules)) return "there is no memory, so access is denied";
	while (lines_next_entry(&lines, &line)) {
		*number = lines.number;
		if (users_is_allow(line, &address)) {
			if (!add_allowed(rules, address))
				return "this is no ADDRESS or ADDRESS/BITS, or one too many, so access is denied";
			continue;
		}
		const char *wrong = NULL;
		if (rules->realm.at) {
			wrong = users_check(line, &realm->kinds);
			users++;
		} else if (users_is_user(line)) {
			wrong = "this is USER:HASH where the realm has to be, so access is denied";
		} else if (line.length > AUTH_REALM_MAX || chars_span(line, CHAR_TEXT) != line.length) {
			wrong = "this cannot be a realm, so access is denied";
		} else {
			rules->realm = line;
			realm->users = lines.rest;
		}
		if (wrong) return wrong;
	}
	*number = lines.number;
	if (rules->realm.at && !users) return "there is no USER:HASH below the realm, so access is denied";
	*number = 1;
	if (users && !access_add_test(rules->rule, ACCESS_VALID_USER)) return "there is no memory, so access is denied";
	if (!rules->rule->tests) return "the first line has to be the realm, so access is denied";
	rules->rule->test[0].end = rules->rule->tests; /* if it is a group */
	return NULL;
}

/* --- the format of Apache --- */

/* Returns whether a text has directives of Apache: its first line does, and no line is USER:HASH. */
static bool is_apache(struct slice text) {
	struct lines lines = lines_of(text);
	struct slice line, from;
	if (!lines_next_entry(&lines, &line) || !apache_begins(line)) return false;
	if (users_is_allow(line, &from) && !slice_starts_nocase(from, SLICE("from"))) return false;
	while (lines_next_entry(&lines, &line))
		if (!apache_begins(line) && users_is_user(line)) return false;
	return true;
}

/* Writes the path of a file of users relative to the root. Returns NULL, or what is wrong. */
static const char *find_users(const struct realms *r, struct slice path, char *out) {
	static const char outside[] =
		"AuthUserFile has to be a file in the directory that is served, named by its path there or by all of its path, "
		"so access is denied";
	bool inside = !slice_starts(path, SLICE("/"));
	for (int i = 0; i < 2 && !inside; i++) {
		struct slice root = r->root[i] ? slice_of(r->root[i]) : (struct slice){0};
		while (root.length && root.at[root.length - 1] == '/') root.length--;
		inside = r->root[i] && *r->root[i] == '/' && slice_starts(path, root) && path.length > root.length &&
				 path.at[root.length] == '/';
		if (inside) slice_drop(&path, root.length + 1);
	}
	if (!inside || !path.length || path.length > ACCESS_FILE_MAX) return outside;
	*text_copy(out, path) = '\0';
	for (struct slice rest = path; rest.length;) {
		const struct slice name = rules_take_until(&rest, '/');
		if (!name.length || slice_equal(name, SLICE(".")) || slice_equal(name, SLICE(".."))) return outside;
	}
	return slice_ends(path, SLICE("/")) ? outside : NULL;
}

/* Returns whether a file is never sent under its own name. */
static bool is_never_sent(const struct realm_file *f) {
	const char *slash = strrchr(f->users_path, '/');
	return (slash ? slash + 1 : f->users_path)[0] == '.' || !(f->users.version.mode & S_IROTH);
}

/* Reads Apache's file of users. Returns NULL, or what is wrong with the .htaccess. */
static const char *read_users(struct realms *r, struct realm_file *f, struct realm *realm) {
	size_t length = 0;
	const char *wrong = find_users(r, realm->rules.users, f->users_path);
	if (wrong) {
		f->users_path[0] = '\0';
		return wrong;
	}
	f->users = (struct text_file){0};
	(void)text_file_look(&f->users, r->tree, f->users_path, &realm->source->users, &length);
	if (!realm->source->users) {
		const bool temporary = docroot_error_is_temporary(f->users.error);
		if (temporary) realm->state = REALM_UNAVAILABLE;
		return temporary ? "" : "its AuthUserFile is no file that the user of the server may read, so access is denied";
	}
	if (!is_never_sent(f))
		return "its AuthUserFile would be sent to everybody, so access is denied: give it a name that begins with a "
			   "dot "
			   "(.htpasswd), or chmod o-r";
	struct lines lines = lines_of((struct slice){.at = realm->source->users, .length = length});
	realm->users = lines.rest;
	for (struct slice line; lines_next_entry(&lines, &line);)
		if ((wrong = users_check(line, &realm->kinds)))
			text_file_complain(&f->users, f->users_path, lines.number, wrong);
	return NULL;
}

/* Parses directives of Apache. Returns NULL, or what is wrong, with the line in *number. */
static const char *parse_apache(struct realms *r, struct realm_file *f, struct realm *realm, unsigned *number) {
	const struct realm_source *s = realm->source;
	struct apache_findings findings;
	const char *wrong = apache_read(&realm->rules, s->text, s->length, &findings);
	*number = findings.line;
	if (wrong) return wrong;
	if (findings.ignored)
		text_file_complain(&s->file, s->path, findings.ignored,
						   findings.any ? "directives of Apache that are not about access are ignored: see _redirects "
										  "and _headers"
										: "this file has no directive of Apache about access, so it is ignored: see "
										  "_redirects and _headers");
	bool asks = false;
	for (unsigned i = 0; i < realm->rules.count; i++) asks |= access_depends_on_user(&realm->rules.rule[i]);
	if (!asks) return NULL;
	if (realm->rules.realm.length > AUTH_REALM_MAX ||
		chars_span(realm->rules.realm, CHAR_TEXT) != realm->rules.realm.length)
		return "AuthName cannot be a realm, so access is denied";
	return read_users(r, f, realm);
}

/* --- realms --- */

/* Makes an id of the content and inode of a file. Returns false without memory. */
static bool make_id(const struct realm_file *f, const void *text, size_t length, uint64_t *id) {
	const uint64_t key[] = {(uint64_t)f->device, (uint64_t)f->inode};
	unsigned char digest[DIGEST];
	if (!HMAC(EVP_sha256(), key, sizeof key, text, length, digest, NULL)) return false;
	memcpy(id, digest, sizeof *id);
	return true;
}

/* From now on the realm admits nobody. */
static void close_realm(struct realm *realm, unsigned line, const char *wrong) {
	if (*wrong) text_file_complain(&realm->source->file, realm->source->path, line, wrong);
	if (realm->state == REALM_GOOD) realm->state = REALM_CLOSED;
	access_rules_free(&realm->rules);
	realm->kinds = 0;
	realm->users = SLICE("");
}

/* Parses the text of gatling's own format. If it is malformed, the realm denies access from now on. */
static void judge_own(struct realm *realm) {
	unsigned line;
	access_rules_free(&realm->rules);
	realm->kinds = 0;
	realm->state = REALM_GOOD;
	const char *wrong = parse_own(realm, &line);
	if (wrong) close_realm(realm, line, wrong);
}

bool realm_is_known(struct realm *realm) {
	if (!realm->kinds || !password_cost_measured(realm->kinds)) return !realm->kinds;
	if (realm->rules.of_apache) realm->kinds = 0; /* a hash that takes too long is never right */
	else judge_own(realm);
	return true;
}

/* Returns whether a path is that of a .htaccess, not a .htaccess_global: only that may be Apache's. */
static bool may_be_apache(struct slice path) { return slice_ends(path, SLICE(".htaccess")); }

static void judge(struct realms *r, struct realm_file *f, struct realm *realm) {
	const struct realm_source *s = realm->source;
	unsigned line = 0;
	uint64_t id[2] = {realm->id};
	errno = 0;
	if (!is_apache((struct slice){.at = s->text, .length = s->length})) {
		judge_own(realm);
	} else {
		realm->state = REALM_GOOD;
		const char *wrong = may_be_apache(slice_of(s->path))
								? parse_apache(r, f, realm, &line)
								: "only a .htaccess may have directives of Apache, so access is denied";
		if (wrong) close_realm(realm, line, wrong);
		else if (s->users &&
				 (!make_id(f, s->users, strlen(s->users), &id[1]) || !make_id(f, id, sizeof id, &realm->id)))
			realm->state = REALM_UNAVAILABLE;
	}
	/* what could not be judged for want of memory is read again */
	if (realm->state == REALM_CLOSED && errno == ENOMEM) realm->state = REALM_UNAVAILABLE;
	if (realm->state == REALM_UNAVAILABLE) text_file_again(&f->file);
	if (r->measures && realm->kinds) { /* --check may wait */
		password_cost_measure(realm->kinds);
		(void)realm_is_known(realm);
	}
}

/* Returns the realm of a text, which it takes over. */
static struct realm *realm_new(struct realms *r, struct realm_file *f, const char *path, char *text, size_t length) {
	uint64_t id;
	struct realm *realm = malloc(sizeof *realm);
	struct realm_source *s = malloc(sizeof *s);
	char *own_path = strdup(path);
	if (!realm || !s || !own_path || !make_id(f, text, length, &id)) {
		text_file_again(&f->file);
		free(own_path);
		free(s);
		free(realm);
		free(text);
		return realm_of_error(r, ENOMEM);
	}
	const char *slash = strchr(path, '/');
	const struct slice owner = {.at = path, .length = slash ? (size_t)(slash - path) : 0};
	*s = (struct realm_source){.file = f->file, .path = own_path, .text = text, .length = length};
	*realm = (struct realm){.references = 1, .id = id, .owner = slice_hash(0, owner), .source = s};
	judge(r, f, realm);
	return realm;
}

/* Returns the place for a new file: of the one that it has replaced at that path, as editors do, or a free one; or of
 * the oldest, if there is none. */
static struct realm_file *find_place(struct realms *r, uint64_t path) {
	for (struct realm_file *f = r->file; f < r->file + AUTH_REALMS_MAX && f->realm; f++)
		if (f->path == path) return f;
	return &r->file[r->found++ % AUTH_REALMS_MAX];
}

/* Returns the file with that inode. A realm that was in its place lasts as long as its references. */
static struct realm_file *find_file(struct realms *r, const char *path, const struct stat *st) {
	for (struct realm_file *f = r->file; f < r->file + AUTH_REALMS_MAX && f->realm; f++)
		if (f->device == st->st_dev && f->inode == st->st_ino) return f;
	const uint64_t hash = slice_hash(0, slice_of(path));
	struct realm_file *place = find_place(r, hash);
	realm_release(place->realm);
	*place = (struct realm_file){.device = st->st_dev, .inode = st->st_ino, .path = hash};
	return place;
}

/* Has the file read again if its file of users has changed. */
static void look_at_users(struct realms *r, struct realm_file *f) {
	char *text;
	size_t length;
	if (!f->users_path[0] || text_file_look(&f->users, r->tree, f->users_path, &text, &length) == TEXT_SAME) return;
	free(text);
	f->file = (struct text_file){0};
	realm_release(f->realm);
	f->realm = NULL;
}

struct realm *realms_find(struct realms *r, const char *path, const struct stat *st) {
	struct realm_file *f = find_file(r, path, st);
	char *text;
	size_t length;
	look_at_users(r, f);
	enum text_state state = text_file_look(&f->file, r->tree, path, &text, &length);
	uint64_t id;
	const bool own = f->realm && f->realm->source && f->realm->state != REALM_UNAVAILABLE && !f->users_path[0];
	if (state == TEXT_NEW && own && make_id(f, text, length, &id) && f->realm->id == id) {
		free(text); /* only its times have changed */
	} else if (state != TEXT_SAME || !f->realm) {
		if (!text && !docroot_error_is_temporary(f->file.error)) text_file_complain(&f->file, path, 0, unreadable);
		realm_release(f->realm);
		f->users_path[0] = '\0';
		f->realm = text ? realm_new(r, f, path, text, length) : realm_of_error(r, f->file.error);
	}
	f->realm->references++;
	return f->realm;
}
