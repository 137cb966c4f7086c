/* site.c - see site.h. A direct-mapped table of authorities as they are asked for: one that hashes to a taken place
 * takes it over, so that no number of invented hosts costs memory. Sites themselves, of which there are no more than
 * directories, are kept. */
#include "gatling/site/site.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/hash.h"
#include "gatling/base/notice.h"
#include "gatling/base/owfat.h"
#include "gatling/site/rules/text_file.h"

enum { BUCKETS = 256, NAME_ROOM = 24, SITE_LINE_SHOWN = 200 /* bytes of a line that is left out */ };

static const char headers_name[] = "_headers", redirects_name[] = "_redirects", guard_name[] = ".htaccess_global";

struct site_entry {
	struct site site; /* first: a site is its entry */
	struct text_file headers, redirects;
	int64_t checked_ms;
	struct site_entry *next;
	char prefix[];
};

struct authority_entry {
	int64_t checked_ms;
	uint16_t length, port;
	bool used;
	struct site_entry *found; /* NULL: there is none */
	char authority[AUTHORITY_MAX];
};

struct sites {
	const struct docroot *docroot;
	struct basic_auth *auth;
	enum vhosts vhosts;
	unsigned changes;
	struct site_entry *bucket[BUCKETS];
	struct authority_entry asked[SITES_MAX];
};

struct sites *sites_new(const struct docroot *docroot, struct basic_auth *auth, enum vhosts vhosts) {
	struct sites *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->docroot = docroot;
	s->auth = auth;
	s->vhosts = vhosts;
	return s;
}

void sites_free(struct sites *s) {
	if (!s) return;
	for (int i = 0; i < BUCKETS; i++) {
		for (struct site_entry *e; (e = s->bucket[i]);) {
			s->bucket[i] = e->next;
			header_rules_free(e->site.headers);
			redirect_rules_free(e->site.redirects);
			realm_release(e->site.realm);
			realm_release(e->site.outer);
			free(e);
		}
	}
	free(s);
}

unsigned sites_changes(const struct sites *s) { return s->changes; }

bool site_hides(const struct site *site, struct slice path) {
	if (!path.length || path.at[path.length - 1] != 's') return false; /* as most */
	const char *slash = site->holds_sites ? memchr(path.at, '/', path.length) : NULL;
	size_t n = slash ? (size_t)(slash + 1 - path.at) : 0;
	struct slice name = {.at = path.at + n, .length = path.length - n};
	return slice_equal(name, SLICE(headers_name)) || slice_equal(name, SLICE(redirects_name));
}

/* --- its files --- */

static const char *path_of(const struct site_entry *e, const char *name, char *room) {
	size_t prefix = e->site.prefix.length;
	memcpy(room, e->prefix, prefix);
	memcpy(room + prefix, name, strlen(name) + 1);
	return room;
}

/* Says what is left out of a file of rules. */
struct rules_reader {
	struct rules_report report; /* first: it is told */
	const struct docroot *docroot;
	const struct site_entry *entry;
	const struct text_file *file;
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	unsigned told;
};

/* Whether a file is sent for a path of the site if no rule is asked: the file itself, an index, or a page. */
static bool there(struct rules_report *report, struct slice path) {
	const struct rules_reader *r = (struct rules_reader *)report;
	const struct slice local = {.at = path.at + 1, .length = path.length - 1};
	size_t prefix = r->entry->site.prefix.length, length = prefix + local.length;
	char name[PATH_MAX];
	struct stat st;
	if (length + sizeof "/index.html" > sizeof name || site_hides(&r->entry->site, local)) return false;
	memcpy(name, r->entry->prefix, prefix);
	memcpy(name + prefix, local.at, local.length);
	name[length] = '\0';
	bool found = docroot_stat(r->docroot, length ? name : ".", &st) == 0;
	const char *slash = strrchr(name, '/');
	if (found && S_ISREG(st.st_mode)) return true;
	const char *rest = ".html";
	if (found && S_ISDIR(st.st_mode)) rest = !length || name[length - 1] == '/' ? "index.html" : "/index.html";
	else if (strchr(slash ? slash : name, '.')) return false;
	memcpy(name + length, rest, strlen(rest) + 1);
	return docroot_stat(r->docroot, name, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH;
}

static void tell(struct rules_report *report, const struct rules_error *error) {
	struct rules_reader *r = (struct rules_reader *)report;
	char text[SITE_LINE_SHOWN + RULES_ERROR_MAX + 16];
	if (r->told++ >= SITE_TOLD_MAX && !notice_checks()) return;
	int shown = (int)(error->whole.length < SITE_LINE_SHOWN ? error->whole.length : SITE_LINE_SHOWN);
	const char *more = error->whole.length > SITE_LINE_SHOWN ? "..." : "";
	if (error->line) snprintf(text, sizeof text, "'%.*s'%s: %s", shown, error->whole.at, more, error->text);
	else snprintf(text, sizeof text, "%s", error->text);
	text_file_complain(r->file, r->path, error->line, text);
}

static void tell_nobody(struct rules_report *report, const struct rules_error *error) {
	(void)report;
	(void)error;
}

static void tell_how_many_more(const struct rules_reader *r) {
	char text[RULES_ERROR_MAX];
	if (r->told <= SITE_TOLD_MAX || notice_checks()) return;
	snprintf(text, sizeof text, "%u more lines are left out: gatling --check names them", r->told - SITE_TOLD_MAX);
	text_file_complain(r->file, r->path, 0, text);
}

/* Why it cannot be read. */
static const char *what_failed(const struct text_file *file, struct rules_error *error) {
	if (file->error == EFBIG) rules_fail(error, 0, "the file is too large: more than %d bytes", TEXT_FILE_MAX);
	else rules_fail(error, 0, "it cannot be read: %s", strerror(file->error));
	return error->text;
}

/* A file of rules, and how it becomes some. */
struct rules_kind {
	const char *name;
	void *(*parse)(struct slice text, struct rules_report *report);
	void (*free)(void *rules); /* NULL is allowed */
};

static void *parse_headers(struct slice text, struct rules_report *report) { return header_rules_parse(text, report); }
static void free_headers(void *rules) { header_rules_free(rules); }
static const struct rules_kind headers_kind = {headers_name, parse_headers, free_headers};

static void *parse_redirects(struct slice text, struct rules_report *report) {
	return redirect_rules_parse(text, report);
}
static void free_redirects(void *rules) { redirect_rules_free(rules); }
static const struct rules_kind redirects_kind = {redirects_name, parse_redirects, free_redirects};

/* The rules that the file has now. As long as it cannot be read they are the last ones, of another worker if this has
 * none. */
static void *look_at_rules(const struct sites *s, const struct site_entry *e, const struct rules_kind *kind,
						   struct text_file *file, void *rules) {
	struct rules_reader reader = {
		.report = {.tell = tell, .there = there}, .docroot = s->docroot, .entry = e, .file = file};
	struct rules_error error;
	char *text;
	size_t length;
	enum text_state state = text_file_look(file, s->docroot, path_of(e, kind->name, reader.path), &text, &length);
	if (state == TEXT_SAME) return rules;
	if (state == TEXT_FAILED) text_file_complain(file, reader.path, 0, what_failed(file, &error));
	void *new = text ? kind->parse((struct slice){.at = text, .length = length}, &reader.report) : NULL;
	tell_how_many_more(&reader);
	if (new || state == TEXT_NONE) {
		text_file_good(reader.path, text, length);
		kind->free(rules);
		rules = new;
	} else if (!rules) {
		free(text);
		text = text_file_last_good(reader.path, &length);
		reader.report.tell = tell_nobody;
		if (text) rules = kind->parse((struct slice){.at = text, .length = length}, &reader.report);
	}
	free(text);
	return rules;
}

static void look_at_files(struct sites *s, struct site_entry *e, int64_t now_ms) {
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	if (e->checked_ms && now_ms - e->checked_ms < SITE_CHECK_MS) return;
	e->checked_ms = now_ms;
	const struct header_rules *before = e->site.headers;
	bool again = e->headers.looked;
	e->site.headers = look_at_rules(s, e, &headers_kind, &e->headers, e->site.headers);
	s->changes += again && e->site.headers != before;
	e->site.redirects = look_at_rules(s, e, &redirects_kind, &e->redirects, e->site.redirects);
	realm_release(e->site.realm);
	e->site.realm = basic_auth_find(s->auth, path_of(e, guard_name, path));
	realm_release(e->site.outer);
	e->site.outer = s->vhosts == VHOSTS_TRY && e->site.prefix.length ? basic_auth_find(s->auth, guard_name) : NULL;
}

/* --- its directory --- */

/* The site of that directory. NULL: no memory. */
static struct site_entry *enter(struct sites *s, struct slice prefix) {
	struct site_entry **link = &s->bucket[hash_octets(0, prefix) % BUCKETS];
	while (*link && !slice_equal((*link)->site.prefix, prefix)) link = &(*link)->next;
	struct site_entry *e = *link;
	if (e || !(e = calloc(1, sizeof *e + prefix.length + 1))) return e;
	if (prefix.length) memcpy(e->prefix, prefix.at, prefix.length);
	e->site.holds_sites = s->vhosts == VHOSTS_TRY && !prefix.length;
	e->site.prefix = (struct slice){.at = e->prefix, .length = prefix.length};
	return *link = e;
}

/* The site in that directory, if there is one. *error: why that could not be seen just now. */
static struct site_entry *try_directory(struct sites *s, const char *name, size_t length, int *error) {
	char path[SITE_PREFIX_MAX + 1];
	struct stat st;
	memcpy(path, name, length);
	path[length] = '\0';
	if (docroot_stat(s->docroot, path, &st) == -1) {
		if (docroot_error_is_temporary(errno)) *error = errno;
		return NULL;
	}
	if (!S_ISDIR(st.st_mode)) return NULL;
	path[length] = '/';
	return enter(s, (struct slice){.at = path, .length = length + 1});
}

/* NULL: there is none, or, with *error, that is not known. */
static struct site_entry *look(struct sites *s, const struct authority_entry *asked, int *error) {
	char name[SITE_PREFIX_MAX]; /* "host:port" */
	if (s->vhosts == VHOSTS_OFF) return enter(s, SLICE(""));
	size_t host_length = host_name((struct slice){.at = asked->authority, .length = asked->length}, name);
	size_t length = host_length;
	name[length++] = ':';
	length += fmt_ulong(name + length, asked->port);
	struct site_entry *e = try_directory(s, name, length, error);
	if (!e) e = try_directory(s, name, host_length, error);
	if (!e) e = try_directory(s, "default", strlen("default"), error);
	if (!e && s->vhosts == VHOSTS_TRY) e = enter(s, SLICE(""));
	return *error ? NULL : e; /* rather none than another's */
}

const struct site *sites_find(struct sites *s, struct slice host, unsigned port, int64_t now_ms) {
	if (s->vhosts == VHOSTS_OFF) host = SLICE("");
	struct authority_entry *a = &s->asked[hash_octets(port, host) % SITES_MAX];
	bool same =
		a->used && a->port == port && slice_equal((struct slice){.at = a->authority, .length = a->length}, host);
	int error = 0;
	if (!same || now_ms - a->checked_ms >= SITE_CHECK_MS) {
		if (!same && host.length) memcpy(a->authority, host.at, host.length);
		a->length = (uint16_t)host.length;
		a->port = (uint16_t)port;
		a->checked_ms = now_ms;
		a->found = look(s, a, &error);
		a->used = !error;
		if (a->found) look_at_files(s, a->found, now_ms);
	}
	errno = error ? error : ENOENT;
	return a->found ? &a->found->site : NULL;
}

void site_complain(const struct site *site, unsigned line) {
	const struct site_entry *e = (const struct site_entry *)site;
	char path[SITE_PREFIX_MAX + NAME_ROOM], text[RULES_ERROR_MAX];
	snprintf(text, sizeof text, "with this rule a response gets more than %d bytes of fields: answered with 500",
			 HEADER_OCTETS_MAX);
	text_file_complain(&e->headers, path_of(e, headers_name, path), line, text);
}
