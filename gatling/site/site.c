/* site.c - see site.h. A direct-mapped table maps authorities to sites. A new authority takes over the entry that it
 * hashes to, so that invented hosts cost no memory. Sites are kept, since there are no more of them than
 * directories. */
#include "gatling/site/site.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/lines.h"
#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/files/report.h"
#include "gatling/site/rules/text_file.h"
#include "gatling/site/rules/trust.h"

enum {
	BUCKETS = 256,
	FILE_PATH_MAX = SITE_PREFIX_MAX + 24,
	SITE_LINE_SHOWN = 200 /* bytes of a malformed line */
};

struct site_entry {
	struct site site; /* first: a pointer to it is one to this */
	struct text_file headers_file, redirects_file, limits_file;
	struct limit_rules *limit_rules;                   /* also while they do not apply */
	enum { UNJUDGED, DISTRUSTED, TRUSTED } limits_are; /* of the last file that could be read */
	int64_t checked_ms;
	bool is_site; /* otherwise only its files are protected */
	struct site_entry *next;
	char prefix[];
};

/* The directories that may be the site of an authority, in the order in which they are tried. */
enum candidate { HOST_AND_PORT, HOST_ALONE, DEFAULT, ROOT, CANDIDATES };

struct authority_entry {
	int64_t checked_ms;
	uint16_t length, port;
	bool used;
	struct site_entry *site; /* NULL: none */
	char authority[AUTHORITY_MAX];
};

struct sites {
	const struct tree *tree;
	struct names *names;
	struct basic_auth *auth;
	enum vhosts vhosts;
	const struct upstreams_allowed *upstreams;
	uid_t starter;
	unsigned changes;
	struct {
		int64_t seen_ms;
		size_t length;
		char prefix[SITE_PREFIX_MAX];
	} unruled; /* the last directory that is_unruled() found to be so */
	struct site_entry *bucket[BUCKETS];
	struct authority_entry authority[SITES_MAX];
};

struct sites *sites_new(const struct tree *tree, struct names *names, struct basic_auth *auth, enum vhosts vhosts,
						const struct upstreams_allowed *upstreams, uid_t starter) {
	struct sites *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->tree = tree;
	s->names = names;
	s->auth = auth;
	s->vhosts = vhosts;
	s->upstreams = upstreams;
	s->starter = starter;
	return s;
}

void sites_free(struct sites *s) {
	if (!s) return;
	for (int i = 0; i < BUCKETS; i++) {
		for (struct site_entry *e; (e = s->bucket[i]);) {
			s->bucket[i] = e->next;
			header_rules_free(e->site.headers);
			redirect_rules_free(e->site.redirects);
			limit_rules_free(e->limit_rules);
			guard_release(&e->site.guard);
			free(e);
		}
	}
	free(s);
}

unsigned sites_changes(const struct sites *s) { return s->changes; }

bool site_begins_at(const struct site *site, struct slice path) {
	return !path.length || (site->holds_sites && slice_until(path, '/') + 1 == path.length);
}

bool site_shows(const struct site *site, struct slice path) {
	if (site_file_is_rules(path)) return false;
	const size_t directory = site->holds_sites ? slice_until(path, '/') + 1 : path.length;
	return directory >= path.length || !site_file_is_rules(slice_rest(path, directory));
}

/* --- its files --- */

/* Writes the path of a file of a site to path (FILE_PATH_MAX bytes), and returns it. */
static const char *file_path(const struct site_entry *e, enum site_file file, char *path) {
	*text_copy_string(text_copy(path, e->site.prefix), site_file_name[file]) = '\0';
	return path;
}

/* A reader of a file of rules, which reports the malformed lines. */
struct rules_reader {
	struct rules_report report; /* first: a pointer to it is one to this */
	const struct tree *tree;
	const struct site_entry *entry;
	const struct text_file *file;
	char path[FILE_PATH_MAX];
	unsigned reported;
};

/* Returns whether a file is at a path and everybody may read it. */
static bool is_readable(const struct tree *tree, const char *path) {
	struct stat st;
	return tree_stat(tree, path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH;
}

/* Returns whether a path of the site leads to a file if there are no rules: the file itself, a page (PATH.html), or the
 * index of a directory. */
static bool has_file(struct rules_report *report, struct slice path) {
	const struct rules_reader *r = (struct rules_reader *)report;
	const struct slice local = slice_rest(path, 1);
	const struct slice prefix = r->entry->site.prefix;
	size_t length = prefix.length + local.length;
	char name[PATH_MAX];
	struct stat st;
	if (length + sizeof "/index.html" > sizeof name || !site_shows(&r->entry->site, local)) return false;
	*TEXT_JOIN(name, prefix, local) = '\0';
	if (tree_stat(r->tree, length ? name : ".", &st) == 0 && S_ISREG(st.st_mode)) return true;
	const bool directory = !local.length || local.at[local.length - 1] == '/';
	*text_copy(name + length, directory ? SLICE("index.html") : SLICE("/index.html")) = '\0';
	if (is_readable(r->tree, name)) return true;
	if (!local.length) return false;
	*text_copy(name + length - directory, SLICE(".html")) = '\0';
	const char *slash = strrchr(name, '/');
	return (slash ? slash[1] : *name) != '.' && is_readable(r->tree, name);
}

enum { LINE_TEXT_MAX = SITE_LINE_SHOWN + RULES_ERROR_MAX + 16 };

/* Writes the line, as far as it is shown, and what is to be said of it to text (LINE_TEXT_MAX bytes). */
static const char *quote_line(const struct rules_error *error, char *text) {
	const int shown = (int)(error->whole.length < SITE_LINE_SHOWN ? error->whole.length : SITE_LINE_SHOWN);
	const char *more = error->whole.length > SITE_LINE_SHOWN ? "..." : "";
	snprintf(text, LINE_TEXT_MAX, "'%.*s'%s: %s", shown, error->whole.at, more, error->text);
	return text;
}

static void report_line(struct rules_report *report, const struct rules_error *error) {
	struct rules_reader *r = (struct rules_reader *)report;
	char text[LINE_TEXT_MAX];
	if (r->reported++ >= SITE_TOLD_MAX && !notice_checks()) return;
	text_file_complain(r->file, r->path, error->line, error->line ? quote_line(error, text) : error->text);
}

/* For --check: what is no mistake. */
static void note_line(struct rules_report *report, const struct rules_error *error) {
	const struct rules_reader *r = (struct rules_reader *)report;
	char text[LINE_TEXT_MAX];
	notice_remark("%s:%u: %s", r->path, error->line, quote_line(error, text));
}

static void report_further_lines(const struct rules_reader *r) {
	char text[RULES_ERROR_MAX];
	if (r->reported <= SITE_TOLD_MAX || notice_checks()) return;
	snprintf(text, sizeof text, "%u more lines are wrong: gatling --check names them", r->reported - SITE_TOLD_MAX);
	text_file_complain(r->file, r->path, 0, text);
}

/* A file of rules and its parser. */
struct rules_kind {
	enum site_file file;
	bool closes; /* until its rules are known, access is denied */
	void *(*parse)(struct slice text, struct rules_report *report);
	void (*free)(void *rules);
};

static const struct rules_kind headers_kind = {SITE_HEADERS, false, header_rules_parse, header_rules_free};
static const struct rules_kind redirects_kind = {SITE_REDIRECTS, true, redirect_rules_parse, redirect_rules_free};
static const struct rules_kind limits_kind = {SITE_LIMITS, true, limit_rules_parse, limit_rules_free};

/* Returns the current rules of a file, and frees `rules` if they are replaced. While the file cannot be read, the
 * current rules are the last ones, or those of another worker. */
static void *update_rules(const struct sites *s, const struct site_entry *e, const struct rules_kind *kind,
						  struct text_file *file, void *rules) {
	struct rules_reader reader = {.report = {.tell = report_line,
											 .note = notice_checks() ? note_line : NULL,
											 .there = notice_checks() ? has_file : NULL,
											 .upstreams = s->upstreams},
								  .tree = s->tree,
								  .entry = e,
								  .file = file};
	struct rules_error error;
	char *text;
	size_t length;
	const ino_t before = file->version.inode;
	enum text_state state = text_file_look(file, s->tree, file_path(e, kind->file, reader.path), &text, &length);
	if (state == TEXT_SAME) return rules;
	if (state == TEXT_NEW && rules && before == file->version.inode && file_version_unsettled_ms(&file->version)) {
		file->recent = true; /* somebody may be in the middle of writing it: it is read again at the next check */
		free(text);
		return rules;
	}
	if (file->error == EFBIG) rules_fail(&error, "the file is too large: more than %d bytes", LINES_TEXT_MAX);
	else if (file->error == EINVAL) rules_fail(&error, "it is no regular file: replace it by one, or remove it");
	else if (file->error == ENOLINK) rules_fail(&error, "it is a symbolic link to nothing that the server can see");
	else rules_fail(&error, "it cannot be read: %s", strerror(file->error));
	const bool entered =
		file->error != EACCES || file->version.mode; /* otherwise its directory denies access, and is reported */
	const size_t said = strlen(error.text);
	if (kind->closes && !rules)
		snprintf(error.text + said, sizeof error.text - said, "; until that is mended, access to the site is denied");
	if (state == TEXT_FAILED && entered && file->error != EINPROGRESS)
		text_file_complain(file, reader.path, 0, error.text);
	void *new = text ? kind->parse((struct slice){.at = text, .length = length}, &reader.report) : NULL;
	report_further_lines(&reader);
	if (text && !new) text_file_again(file);
	if (new || state == TEXT_NONE) {
		text_file_good(reader.path, text, length);
		kind->free(rules);
		rules = new;
	} else if (!rules) {
		free(text);
		text = text_file_last_good(reader.path, &length);
		reader.report.tell = NULL; /* another worker has reported its lines */
		if (text) rules = kind->parse((struct slice){.at = text, .length = length}, &reader.report);
	}
	free(text);
	return rules;
}

/* Returns whether nobody may have written a file who may only fill the site (trust.h). Reports why somebody may, and
 * what that means. */
static bool is_trusted(const struct sites *s, const struct site_entry *e, enum site_file which,
					   const struct text_file *file, const char *otherwise) {
	char path[FILE_PATH_MAX], why[TRUST_WHY_MAX], text[TRUST_WHY_MAX + 64];
	if (trust_file(s->tree, s->starter, e->prefix, file_path(e, which, path), file, why)) return true;
	snprintf(text, sizeof text, "%s: %s", otherwise, why);
	if (*why) text_file_complain(file, path, 0, text);
	return false;
}

/* Returns whether the rules in _redirects may pass requests on. */
static bool may_pass_on(const struct sites *s, const struct site_entry *e) {
	return e->is_site && redirect_rules_passing(e->site.redirects) &&
		   is_trusted(s, e, SITE_REDIRECTS, &e->redirects_file, "rules that pass requests on are answered with 503");
}

/* Judges whether the limits in _limits apply. While the file cannot be read, the last ones do. */
static void judge_limits(const struct sites *s, struct site_entry *e) {
	if (e->limits_file.error == ENOENT) e->limits_are = UNJUDGED;
	else if (!e->limits_file.error && e->limit_rules && e->is_site)
		e->limits_are =
			is_trusted(s, e, SITE_LIMITS, &e->limits_file, "its limits do not apply") ? TRUSTED : DISTRUSTED;
	e->site.limits = e->limits_are == TRUSTED ? e->limit_rules : NULL;
}

static bool is_due(const struct site_entry *e, int64_t now_ms) {
	return !e->checked_ms || now_ms - e->checked_ms >= SITE_CHECK_MS;
}

/* Returns whether a site is inside that of the root, and has its passwords, too. */
static bool is_inner(const struct sites *s, const struct site_entry *e) {
	return s->vhosts == VHOSTS_TRY && e->site.prefix.length;
}

/* Returns whether there are no rules only since their file cannot be read for now. */
static bool is_awaited(const void *rules, const struct text_file *file) {
	return !rules && docroot_error_is_temporary(file->error);
}

/* Returns whether access is denied for lack of the rules of a file. known: there are some, or the file is missing. */
static bool is_closed_by(const struct rules_kind *kind, bool known) { return kind->closes && !known; }

static void update_files(struct sites *s, struct site_entry *e, int64_t now_ms) {
	char path[FILE_PATH_MAX];
	e->checked_ms = now_ms;
	const struct header_rules *before = e->site.headers;
	bool again = e->headers_file.looked;
	e->site.headers = update_rules(s, e, &headers_kind, &e->headers_file, e->site.headers);
	s->changes += again && e->site.headers != before;
	e->site.redirects = update_rules(s, e, &redirects_kind, &e->redirects_file, e->site.redirects);
	if (e->site.redirects) redirect_rules_permit(e->site.redirects, may_pass_on(s, e));
	e->limit_rules = update_rules(s, e, &limits_kind, &e->limits_file, e->limit_rules);
	judge_limits(s, e);
	e->site.redirects_known = e->site.redirects || e->redirects_file.error == ENOENT;
	e->site.known = !is_awaited(e->site.redirects, &e->redirects_file) &&
					!is_awaited(e->site.headers, &e->headers_file) && !is_awaited(e->limit_rules, &e->limits_file);
	guard_release(&e->site.guard);
	e->site.guard = basic_auth_of_files(s->auth, file_path(e, SITE_PASSWORDS, path),
										is_inner(s, e) ? site_file_name[SITE_PASSWORDS] : NULL);
	const bool headers_known = e->site.headers || e->headers_file.error == ENOENT;
	const bool limits_known = e->limits_are != UNJUDGED || e->limits_file.error == ENOENT || !e->is_site;
	/* rules that cannot be read may hide files, or keep guesses from a password */
	const bool closed = is_closed_by(&headers_kind, headers_known) ||
						is_closed_by(&redirects_kind, e->site.redirects_known) ||
						is_closed_by(&limits_kind, limits_known);
	if (e->site.known && closed) e->site.guard.permission = PERMISSION_DENIED;
	if (tree_awaits(s->tree)) e->checked_ms = 0;
}

/* Says that update_files() is going to read the files of a site. prefix: as of struct site. */
static void expect_files(const struct sites *s, struct slice prefix) {
	char path[FILE_PATH_MAX];
	for (enum site_file i = 0; i < SITE_FILES; i++) {
		*text_copy_string(text_copy(path, prefix), site_file_name[i]) = '\0';
		tree_expect(s->tree, path, i == SITE_REDIRECTS || i == SITE_LIMITS ? REMOTE_READ | REMOTE_HOLDER : REMOTE_READ);
	}
}

/* --- its directory --- */

/* Returns whether a directory can be a site. prefix: its path with a trailing slash, or "" for the root. */
static bool may_be_site(const struct sites *s, struct slice prefix) {
	if (prefix.length) return host_has_directory(s->vhosts, slice_first(prefix, prefix.length - 1));
	return s->vhosts != VHOSTS_ONLY;
}

/* Returns the site of a directory, and adds it if it is new. Returns NULL without memory. */
static struct site_entry *add_site(struct sites *s, struct slice prefix) {
	struct site_entry **link = &s->bucket[slice_hash(0, prefix) % BUCKETS];
	while (*link && !slice_equal((*link)->site.prefix, prefix)) link = &(*link)->next;
	struct site_entry *e = *link;
	if (e) return e;
	if (!(e = calloc(1, sizeof *e + prefix.length + 1))) return NULL;
	(void)text_copy(e->prefix, prefix);
	e->is_site = may_be_site(s, prefix);
	e->site.holds_sites = s->vhosts == VHOSTS_TRY && !prefix.length;
	e->site.prefix = (struct slice){.at = e->prefix, .length = prefix.length};
	return *link = e;
}

/* Writes the path of a candidate, with a trailing slash, to path (SITE_PREFIX_MAX + 1 bytes). Returns its length, 0 for
 * the root. */
static size_t candidate_path(const struct authority_entry *a, enum candidate candidate, char *path) {
	char *end = path;
	if (candidate == ROOT) return 0;
	if (candidate == DEFAULT) end = text_copy(path, SLICE("default"));
	else end += host_name((struct slice){.at = a->authority, .length = a->length}, path);
	if (candidate == HOST_AND_PORT) {
		*end++ = ':';
		end += fmt_ulong(end, a->port);
	}
	*end++ = '/';
	return (size_t)(end - path);
}

/* Returns 0 if there is a directory, ENOENT if there is none, or a temporary errno if that is unknown. */
static int look_at_directory(const struct sites *s, struct slice prefix) {
	char path[SITE_PREFIX_MAX + 1];
	struct stat st;
	if (!prefix.length) return 0;
	*text_copy(path, slice_first(prefix, prefix.length - 1)) = '\0';
	if (tree_stat(s->tree, path, &st) == 0) return S_ISDIR(st.st_mode) ? 0 : ENOENT;
	if (docroot_error_is_temporary(errno)) return errno;
	if (s->tree->docroot.outside && !s->tree->remote && !names_lack(s->names, slice_of(path)))
		(void)report_link(&s->tree->docroot, path);
	return ENOENT;
}

/* Has threads look at what look_up() looks at on other machines. Returns whether they have. */
static bool is_seen(const struct sites *s, const struct authority_entry *a) {
	char path[SITE_PREFIX_MAX + 1];
	for (enum candidate i = HOST_AND_PORT; i < CANDIDATES; i++) {
		const struct slice prefix = {.at = path, .length = candidate_path(a, i, path)};
		if (!may_be_site(s, prefix)) continue;
		if (look_at_directory(s, prefix) == 0) expect_files(s, prefix);
	}
	return !tree_awaits(s->tree);
}

/* Sets the site of an authority, NULL if it has none. Returns 0, or an errno if that is not certain. */
static int look_up(struct sites *s, struct authority_entry *a, int64_t now_ms) {
	char path[SITE_PREFIX_MAX + 1];
	struct site_entry *e = NULL;
	for (enum candidate i = HOST_AND_PORT; i < CANDIDATES; i++) {
		const struct slice prefix = {.at = path, .length = candidate_path(a, i, path)};
		if (!may_be_site(s, prefix)) continue;
		int error = look_at_directory(s, prefix);
		if (error == ENOENT) continue;
		if (error) return error; /* no site rather than a wrong one */
		if (!(e = add_site(s, prefix))) return ENOMEM;
		if (is_due(e, now_ms)) update_files(s, e, now_ms);
		break;
	}
	if (tree_awaits(s->tree)) return EINPROGRESS;
	a->site = e;
	a->checked_ms = now_ms;
	return 0;
}

const struct site *sites_find(struct sites *s, struct slice host, unsigned port, int64_t now_ms) {
	if (s->vhosts == VHOSTS_OFF) host = SLICE("");
	struct authority_entry *a = &s->authority[slice_hash(port, host) % SITES_MAX];
	bool same =
		a->used && a->port == port && slice_equal((struct slice){.at = a->authority, .length = a->length}, host);
	int error = 0;
	if (!same) {
		*a = (struct authority_entry){.length = (uint16_t)host.length, .port = (uint16_t)port};
		(void)text_copy(a->authority, host);
	}
	if (!same || now_ms - a->checked_ms >= SITE_CHECK_MS) {
		const bool known = same && now_ms - a->checked_ms < SITE_STALE_MS;
		if (!s->tree->remote || is_seen(s, a)) error = look_up(s, a, now_ms);
		else if (known) tree_begin(s->tree);
		else error = EINPROGRESS;
		if (known && s->tree->remote && a->site && docroot_error_is_temporary(error)) error = 0;
		a->used = !error;
	}
	errno = error ? error : ENOENT;
	if (error || !a->site) return NULL;
	int64_t checked_ms = a->site->checked_ms < a->checked_ms ? a->site->checked_ms : a->checked_ms;
	a->site->site.until_ms = checked_ms + SITE_CHECK_MS;
	return &a->site->site;
}

/* Sets errno. Returns false. */
static bool refuse(int error) {
	errno = error;
	return false;
}

/* Returns whether the rules of a site, or of a directory that may be one, let a file be sent. Returns false with errno,
 * as sites_may_send() does. */
static bool rules_may_send(const struct site *site, struct slice path) {
	if (!site->redirects_known) return refuse(site->known ? EACCES : EAGAIN);
	return !site->redirects || redirect_rules_may_send(site->redirects, path) || refuse(EACCES);
}

/* Returns whether the directory has no _redirects, or had none at some time in the last NAMES_LATELY_MS. */
static bool is_unruled(struct sites *s, struct slice prefix, int64_t now_ms) {
	char file[FILE_PATH_MAX];
	struct stat st;
	const struct slice unruled = {.at = s->unruled.prefix, .length = s->unruled.length};
	if (s->unruled.seen_ms == now_ms && slice_equal(unruled, prefix)) return true;
	char *end = text_copy_string(text_copy(file, prefix), site_file_name[SITE_REDIRECTS]);
	*end = '\0';
	tree_expect(s->tree, file, REMOTE_READ);
	if (!names_lacked_lately(s->names, (struct slice){.at = file, .length = (size_t)(end - file)}) &&
		(tree_lstat(s->tree, file, &st) == 0 || (errno != ENOENT && errno != ENOTDIR)))
		return false;
	s->unruled.seen_ms = now_ms;
	s->unruled.length = (size_t)(text_copy(s->unruled.prefix, prefix) - s->unruled.prefix);
	return true;
}

/* Does what sites_may_send() does, with the rules in one directory. prefix: with a trailing slash, or "" for the
 * root. */
static bool may_send_from(struct sites *s, struct slice prefix, struct slice path, int64_t now_ms) {
	if (prefix.length > SITE_PREFIX_MAX) return refuse(EACCES);
	if (is_unruled(s, prefix, now_ms)) return true;
	struct site_entry *e = add_site(s, prefix);
	if (!e) return refuse(EAGAIN);
	if (is_due(e, now_ms)) update_files(s, e, now_ms);
	return rules_may_send(&e->site, path);
}

bool sites_may_send(struct sites *s, const struct site *site, struct slice path, int64_t now_ms) {
	if (!rules_may_send(site, path)) return false;
	if (s->vhosts != VHOSTS_TRY) return true;
	if (!site->prefix.length) { /* "/DIRECTORY/FILE" */
		const struct slice inner = slice_rest(path, 1);
		const size_t length = slice_until(inner, '/');
		if (length == inner.length) return true;
		return may_send_from(s, slice_first(inner, length + 1), slice_rest(inner, length), now_ms);
	}
	char whole[1 + SITE_PREFIX_MAX + PATH_MAX];
	if (path.length > PATH_MAX) return refuse(EACCES);
	*whole = '/';
	const char *end = TEXT_JOIN(whole + 1, site->prefix, slice_rest(path, 1));
	return may_send_from(s, SLICE(""), (struct slice){.at = whole, .length = (size_t)(end - whole)}, now_ms);
}

void site_complain(const struct site *site, enum site_file file, unsigned line, const char *text) {
	const struct site_entry *e = (const struct site_entry *)site;
	const struct text_file *const of[SITE_FILES] = {
		[SITE_HEADERS] = &e->headers_file, [SITE_REDIRECTS] = &e->redirects_file, [SITE_LIMITS] = &e->limits_file};
	char path[FILE_PATH_MAX];
	text_file_complain(of[file], file_path(e, file, path), line, text);
}
