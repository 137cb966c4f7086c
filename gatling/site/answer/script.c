/* script.c - see script.h. */
#include "gatling/site/answer/script.h"

#include <errno.h>

#include "gatling/base/slice.h"
#include "gatling/http/path.h"
#include "gatling/site/answer_room.h"

int script_look(const struct site_context *c, const struct site *site, struct slice path) {
	char name[SITE_PREFIX_MAX + TARGET_MAX + 1];
	struct stat st;
	slice_drop(&path, 1);
	if (!path.length || path.length > TARGET_MAX || !site_shows(site, path)) return ENOENT;
	*TEXT_JOIN(name, site->prefix, path) = '\0';
	if (names_stat(c->names, &c->tree, name, &st) == 0) return S_ISREG(st.st_mode) ? 0 : ENOENT;
	return docroot_error_is_temporary(errno) ? errno : ENOENT;
}

bool script_is_named(struct slice path) {
	static const struct slice extensions[] = {SLICE(".php"), SLICE(".phtml"), SLICE(".phar"), SLICE(".cgi"),
											  SLICE(".fcgi")};
	for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
		const size_t length = extensions[i].length;
		if (path.length > length && slice_equal_nocase(slice_rest(path, path.length - length), extensions[i]))
			return true;
	}
	return false;
}

struct slice script_reach(const struct site_context *c, const struct site *site, struct slice path) {
	char name[SITE_PREFIX_MAX + TARGET_MAX + 1];
	if (path.length > 1 + TARGET_MAX) return (struct slice){0};
	const char *end = TEXT_JOIN(name, site->prefix, slice_rest(path, 1));
	size_t reach = names_reach(c->names, (struct slice){.at = name, .length = (size_t)(end - name)});
	reach = reach > site->prefix.length ? reach - site->prefix.length + 1 : 1;
	while (reach < path.length && path.at[reach] != '/') reach++; /* the name of a file */
	return slice_first(path, reach);
}

/* Finds the length of the first part of a path that is a file, or 0. Returns false if that is unknown for now. */
static bool find_file(const struct site_context *c, const struct site *site, struct slice path, size_t *length) {
	const struct slice reach = script_reach(c, site, path);
	*length = 0;
	for (size_t at = 2; at <= reach.length; at++) {
		if (at < path.length && path.at[at] != '/') continue;
		const int error = script_look(c, site, slice_first(path, at));
		if (error == ENOENT) continue;
		if (!error) *length = at;
		return !error;
	}
	return true;
}

/* Decodes a path, and puts a '/' in front of it. Returns false if it is not valid. */
static bool decode(struct slice encoded, char *out, struct slice *path) {
	size_t length;
	if (encoded.length > TARGET_MAX || path_decode(encoded, out + 1, &length) != 0) return false;
	out[0] = '/';
	*path = (struct slice){.at = out, .length = 1 + length};
	return true;
}

/* Returns whether a file to which the target of a rule leads may be run: the rule has its name, or at least its
 * extension, or it has the name of a script. Any other file, such as an upload, would be chosen by a client. */
static bool may_run(const struct redirect *rule, struct slice file) {
	char out[1 + TARGET_MAX];
	struct slice fixed;
	if (script_is_named(file) || (rule->extension.length && slice_ends(file, rule->extension))) return true;
	return decode(rule->fixed, out, &fixed) && slice_starts(fixed, file) &&
		   (fixed.length == file.length || fixed.at[file.length] == '/');
}

int script_find(const struct site_context *c, const struct site *site, const struct redirect *rule, struct slice path,
				struct upstream_script *script) {
	struct answer_room *const room = c->room;
	const bool fcgi = rule->upstream->protocol == UPSTREAM_FCGI;
	if (strlen(c->directory) + 1 + site->prefix.length > SCRIPT_ROOT_MAX) return 404;
	char *end = text_copy_string(room->script_root, c->directory);
	if (site->prefix.length) end = TEXT_JOIN(end, SLICE("/"), slice_first(site->prefix, site->prefix.length - 1));
	if (path.length > 1 + TARGET_MAX) return 404;
	(void)text_copy(room->script_path, path); /* it is not valid after answer() */
	path.at = room->script_path;
	*script = (struct upstream_script){.root = {.at = room->script_root, .length = (size_t)(end - room->script_root)}};
	if (script->root.length && end[-1] == '/') script->root.length--; /* it is "/" */
	if (rule->script) {
		script->is_file = true;
		script->name = slice_first(path, rule->script);
		script->info = slice_rest(path, rule->script);
		return 0;
	}
	struct slice info = path, target = slice_first(rule->target, slice_until(rule->target, '?'));
	if (!rule->own_path) {
		if (!decode(target, room->script_target, &info) || !site_shows(site, slice_rest(info, 1))) return 404;
	}
	size_t file = 0;
	if (fcgi && !find_file(c, site, info, &file)) return 503;
	if (file && !may_run(rule, slice_first(info, file))) return 404;
	script->is_file = file;
	script->info = slice_rest(info, file);
	if (file) script->name = slice_first(info, file);
	else if (slice_ends(path, info)) script->name = slice_first(path, path.length - info.length);
	else if (slice_equal(info, SLICE("/"))) script->name = path; /* "/wiki", of "/wiki/(star)" */
	return 0;
}
