/* site.c - see site.h. A direct-mapped table of authorities as they are asked for: one that hashes to a taken place
 * takes it over, so that no number of invented hosts costs memory. Sites themselves, of which there are no more than
 * directories, are kept. */
#include "gatling/site.h"

#include <errno.h>
#include <errno.h>
#include <stdlib.h>

#include "gatling/hash.h"
#include "gatling/owfat.h"
#include "gatling/text_file.h"

enum { BUCKETS = 256, NAME_ROOM = 24 };

static const char headers_name[] = "_headers", redirects_name[] = "_redirects", guard_name[] = ".htaccess_global";

struct entry {
	struct site site; /* first: a site is its entry */
	struct text_file headers, redirects;
	int64_t checked_ms;
	struct entry *next;
	char prefix[];
};

struct asked {
	int64_t checked_ms;
	uint16_t length, port;
	bool used;
	struct entry *found; /* NULL: there is none */
	char authority[AUTHORITY_MAX];
};

struct sites {
	const struct tree *tree;
	struct guards *guards;
	enum vhosts vhosts;
	struct entry *bucket[BUCKETS];
	struct asked asked[SITES_MAX];
};

struct sites *sites_new(const struct tree *tree, struct guards *guards, enum vhosts vhosts) {
	struct sites *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->tree = tree;
	s->guards = guards;
	s->vhosts = vhosts;
	return s;
}

void sites_free(struct sites *s) {
	if (!s) return;
	for (int i = 0; i < BUCKETS; i++) {
		for (struct entry *e; (e = s->bucket[i]);) {
			s->bucket[i] = e->next;
			header_rules_free(e->site.headers);
			redirect_rules_free(e->site.redirects);
			guard_release(e->site.guard);
			guard_release(e->site.outer);
			free(e);
		}
	}
	free(s);
}

bool site_hides(const struct site *site, struct slice path) {
	if (!path.length || path.at[path.length - 1] != 's') return false; /* as most */
	const char *slash = site->holds_sites ? memchr(path.at, '/', path.length) : NULL;
	size_t n = slash ? (size_t)(slash + 1 - path.at) : 0;
	struct slice name = {.at = path.at + n, .length = path.length - n};
	return slice_equal(name, SLICE(headers_name)) || slice_equal(name, SLICE(redirects_name));
}

/* --- its files --- */

static const char *path_of(const struct entry *e, const char *name, char *room) {
	size_t prefix = e->site.prefix.length;
	memcpy(room, e->prefix, prefix);
	memcpy(room + prefix, name, strlen(name) + 1);
	return room;
}

/* What is wrong with a file of rules is said, and the last good ones stay in force. */
static void say(const struct entry *e, const struct text_file *file, const char *name,
				const struct rules_error *error) {
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	if (*error->text) text_file_complain(file, path_of(e, name, path), error->line, error->text);
}

/* Why it cannot be read. */
static const char *what_failed(const struct text_file *file, struct rules_error *error) {
	if (file->error != EFBIG) return strerror(file->error);
	rules_fail(error, 0, "the file is too large: more than %d bytes", TEXT_FILE_MAX);
	return error->text;
}

/* Looks at a file of rules. TEXT_NEW: *text is malloc'd. */
static enum text_state look_at(const struct sites *s, const struct entry *e, struct text_file *file, const char *name,
							   char **text, struct slice *content) {
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	struct rules_error error;
	size_t length;
	enum text_state state = text_file_look(file, s->tree, path_of(e, name, path), text, &length);
	if (state == TEXT_FAILED) text_file_complain(file, path, 0, what_failed(file, &error));
	*content = (struct slice){.at = *text, .length = length};
	return state;
}

/* After a file of rules could not be read or understood by a worker that has no earlier ones: those of another. */
static char *last_good(const struct entry *e, const char *name, struct slice *content) {
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	size_t length;
	char *text = text_file_last_good(path_of(e, name, path), &length);
	*content = (struct slice){.at = text, .length = length};
	return text;
}

static void note_good(const struct entry *e, const char *name, const char *text, struct slice content) {
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	text_file_good(path_of(e, name, path), text, content.length);
}

static void look_at_headers(const struct sites *s, struct entry *e) {
	struct rules_error error = {0}, ignored;
	struct slice content;
	char *text;
	enum text_state state = look_at(s, e, &e->headers, headers_name, &text, &content);
	if (state == TEXT_SAME) return;
	struct header_rules *rules = text ? header_rules_parse(content, &error) : NULL;
	say(e, &e->headers, headers_name, &error);
	if (rules || state == TEXT_NONE) {
		note_good(e, headers_name, text, content);
		header_rules_free(e->site.headers);
		e->site.headers = rules;
	} else if (!e->site.headers) {
		free(text);
		text = last_good(e, headers_name, &content);
		e->site.headers = text ? header_rules_parse(content, &ignored) : NULL;
	}
	free(text);
}

static void look_at_redirects(const struct sites *s, struct entry *e) {
	struct rules_error error = {0}, warning = {0}, ignored;
	struct slice content;
	char *text;
	enum text_state state = look_at(s, e, &e->redirects, redirects_name, &text, &content);
	if (state == TEXT_SAME) return;
	struct redirect_rules *rules = text ? redirect_rules_parse(content, &error, &warning) : NULL;
	say(e, &e->redirects, redirects_name, &error);
	say(e, &e->redirects, redirects_name, &warning);
	if (rules || state == TEXT_NONE) {
		note_good(e, redirects_name, text, content);
		redirect_rules_free(e->site.redirects);
		e->site.redirects = rules;
	} else if (!e->site.redirects) {
		free(text);
		text = last_good(e, redirects_name, &content);
		e->site.redirects = text ? redirect_rules_parse(content, &ignored, &ignored) : NULL;
	}
	free(text);
}

static void look_at_files(const struct sites *s, struct entry *e, int64_t now_ms) {
	char path[SITE_PREFIX_MAX + NAME_ROOM];
	if (e->checked_ms && now_ms - e->checked_ms < SITE_CHECK_MS) return;
	e->checked_ms = now_ms;
	look_at_headers(s, e);
	look_at_redirects(s, e);
	guard_release(e->site.guard);
	e->site.guard = guards_find(s->guards, path_of(e, guard_name, path));
	guard_release(e->site.outer);
	e->site.outer = s->vhosts == VHOSTS_TRY && e->site.prefix.length ? guards_find(s->guards, guard_name) : NULL;
}

/* --- its directory --- */

/* The site of that directory. NULL: no memory. */
static struct entry *enter(struct sites *s, struct slice prefix) {
	struct entry **link = &s->bucket[hash_octets(0, prefix) % BUCKETS];
	while (*link && !slice_equal((*link)->site.prefix, prefix)) link = &(*link)->next;
	struct entry *e = *link;
	if (e || !(e = calloc(1, sizeof *e + prefix.length + 1))) return e;
	if (prefix.length) memcpy(e->prefix, prefix.at, prefix.length);
	e->site.holds_sites = s->vhosts == VHOSTS_TRY && !prefix.length;
	e->site.prefix = (struct slice){.at = e->prefix, .length = prefix.length};
	return *link = e;
}

/* The site in that directory, if there is one. *unsure becomes true if that cannot be seen now. */
static struct entry *try_directory(struct sites *s, const char *name, size_t length, bool *unsure) {
	char path[SITE_PREFIX_MAX + 1];
	struct stat st;
	memcpy(path, name, length);
	path[length] = '\0';
	if (tree_stat(s->tree, path, &st) == -1) {
		*unsure |= errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		return NULL;
	}
	if (!S_ISDIR(st.st_mode)) return NULL;
	path[length] = '/';
	return enter(s, (struct slice){.at = path, .length = length + 1});
}

static struct entry *look(struct sites *s, const struct asked *asked) {
	char name[SITE_PREFIX_MAX]; /* "host:port" */
	if (s->vhosts == VHOSTS_OFF) return enter(s, SLICE(""));
	size_t host_length = host_name((struct slice){.at = asked->authority, .length = asked->length}, name);
	size_t length = host_length;
	name[length++] = ':';
	length += fmt_ulong(name + length, asked->port);
	bool unsure = false;
	struct entry *e = try_directory(s, name, length, &unsure);
	if (!e) e = try_directory(s, name, host_length, &unsure);
	if (!e) e = try_directory(s, "default", strlen("default"), &unsure);
	if (!e && s->vhosts == VHOSTS_TRY) e = enter(s, SLICE(""));
	return unsure ? NULL : e; /* rather none than another's */
}

const struct site *sites_find(struct sites *s, struct slice host, unsigned port, int64_t now_ms) {
	if (s->vhosts == VHOSTS_OFF) host = SLICE("");
	struct asked *a = &s->asked[hash_octets(port, host) % SITES_MAX];
	bool same =
		a->used && a->port == port && slice_equal((struct slice){.at = a->authority, .length = a->length}, host);
	if (!same || now_ms - a->checked_ms >= SITE_CHECK_MS) {
		if (!same && host.length) memcpy(a->authority, host.at, host.length);
		a->length = (uint16_t)host.length;
		a->port = (uint16_t)port;
		a->used = true;
		a->checked_ms = now_ms;
		a->found = look(s, a);
		if (a->found) look_at_files(s, a->found, now_ms);
	}
	return a->found ? &a->found->site : NULL;
}

void site_complain(const struct site *site, unsigned line) {
	const struct entry *e = (const struct entry *)site;
	struct rules_error error;
	rules_fail(&error, line, "with this rule a response gets more than %d bytes of fields: answered with 500",
			   HEADER_OCTETS_MAX);
	say(e, &e->headers, headers_name, &error);
}
