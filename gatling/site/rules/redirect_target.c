/* redirect_target.c - see redirect_target.h. */
#include "gatling/site/rules/redirect_target.h"

#include "gatling/base/owfat.h"
#include "gatling/http/chars.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/pattern.h"

static bool is_one_of(char c, const char *set) { return c && strchr(set, c); }

/* --- its parts --- */

bool target_is_local(struct slice target) { return target.length && target.at[0] == '/'; }

struct slice target_authority(struct slice target) {
	size_t n = pattern_scheme(target), end = n;
	if (!n) return (struct slice){0};
	while (end < target.length && !is_one_of(target.at[end], "/?#")) end++;
	return (struct slice){.at = target.at + n, .length = end - n};
}

struct slice target_placeholder(struct slice text) {
	struct slice name = {.at = text.at + 1, .length = text.length - 1};
	name.length = text.at[0] == ':' ? pattern_name(name) : 0;
	return name;
}

/* Without the port that the scheme has anyway, whichever it is. */
static struct slice without_default_port(struct slice authority) {
	static const struct slice port[] = {SLICE(":80"), SLICE(":443"), SLICE(":")};
	for (int i = 0; i < 3; i++) {
		size_t n = port[i].length;
		if (authority.length < n || memcmp(authority.at + authority.length - n, port[i].at, n) != 0) continue;
		authority.length -= n;
		break;
	}
	return authority;
}

bool target_same_host(struct slice a, struct slice b) {
	return a.at && b.at && slice_equal_nocase(without_default_port(a), without_default_port(b));
}

struct slice target_path(struct slice target, struct slice *query) {
	struct slice authority = target_authority(target);
	if (authority.at) slice_drop(&target, (size_t)(authority.at - target.at) + authority.length);
	const char *fragment = memchr(target.at, '#', target.length);
	if (fragment) target.length = (size_t)(fragment - target.at);
	const char *question = memchr(target.at, '?', target.length);
	*query = (struct slice){0};
	if (!question) return target;
	size_t length = (size_t)(question - target.at);
	*query = (struct slice){.at = question, .length = target.length - length};
	return (struct slice){.at = target.at, .length = length};
}

/* --- filling in --- */

enum part { PART_AUTHORITY, PART_PATH, PART_QUERY, PART_FRAGMENT };

struct target_writer {
	char *at;
	size_t used;
	enum part part;
	bool local;
	bool failed; /* it does not fit, or is no host */
};

static void put(struct target_writer *w, char c) {
	/* "//" would begin a host */
	if (c == '/' && w->local && w->part == PART_PATH && w->used == 1) return;
	if (w->used == REDIRECT_TARGET_MAX) w->failed = true;
	else w->at[w->used++] = c;
}

static void put_encoded(struct target_writer *w, char c) {
	char encoded[3];
	size_t n = path_encode((struct slice){.at = &c, .length = 1}, encoded);
	for (size_t i = 0; i < n; i++) put(w, encoded[i]);
}

/* Puts the octet at the start of what is encoded already: what a URL may hold in any part, and what is in `also`, stays
 * as it is. */
static void put_again(struct target_writer *w, struct slice s, const char *also) {
	char c = s.at[0];
	if (path_is_encoded(s) || is_one_of(c, "!$'()*+,;:@=") || is_one_of(c, also)) put(w, c);
	else put_encoded(w, c);
}

static bool is_host_text(struct slice s) {
	size_t n = 0;
	while (n < s.length && char_is(s.at[n], CHAR_HOST)) n++;
	return n > 0 && n == s.length;
}

/* Puts what a placeholder stands for: octets, if it is of the path; else they are encoded already. */
static void put_value(struct target_writer *w, struct slice value, bool encoded) {
	if (w->part == PART_AUTHORITY && !is_host_text(value)) w->failed = true;
	for (; value.length && !w->failed; slice_drop(&value, 1)) {
		if (encoded) put_again(w, value, "");
		else put_encoded(w, value.at[0]);
	}
}

static void put_query(struct target_writer *w, struct slice query) {
	if (query.length < 2) return;
	w->part = PART_QUERY;
	put(w, '?');
	for (slice_drop(&query, 1); query.length && !w->failed; slice_drop(&query, 1)) put_again(w, query, "&?");
}

static enum part part_after(enum part part, char c) {
	if (part == PART_AUTHORITY && c == '/') return PART_PATH;
	if (part < PART_QUERY && c == '?') return PART_QUERY;
	return c == '#' ? PART_FRAGMENT : part;
}

/* Puts a stretch of the target, with what its placeholders stand for. */
static void put_text(struct target_writer *w, const struct target_filling *f, struct slice text) {
	while (text.length && !w->failed) {
		struct slice name = target_placeholder(text), value;
		enum part part = part_after(w->part, text.at[0]);
		bool begins = part != w->part, encoded = false;
		w->part = part;
		if (name.length && f->find(f->context, name, &value, &encoded)) put_value(w, value, encoded);
		else if (name.length) w->failed = true;
		else if (begins) put(w, text.at[0]);
		else put_again(w, text, part == PART_PATH ? "&" : "&?");
		slice_drop(&text, 1 + name.length);
	}
}

bool target_fill(const struct target_filling *f, char *buffer, struct slice *url) {
	struct target_writer w = {.at = buffer, .local = target_is_local(f->target)};
	struct slice front = f->target, fragment = front;
	const char *hash = memchr(front.at, '#', front.length);
	if (hash) front.length = (size_t)(hash - front.at);
	slice_drop(&fragment, front.length);
	const char *question = memchr(front.at, '?', front.length);
	if (f->path_only) {
		if (question) front.length = (size_t)(question - front.at);
		fragment.length = 0;
	}
	for (size_t n = pattern_scheme(front); n; n--, slice_drop(&front, 1)) put(&w, front.at[0]);
	w.part = w.local ? PART_PATH : PART_AUTHORITY;
	put_text(&w, f, front);
	if (!f->path_only && !question) put_query(&w, f->query);
	put_text(&w, f, fragment);
	*url = (struct slice){.at = buffer, .length = w.used};
	return !w.failed;
}

/* --- checking --- */

/* Whether it begins with a '.' and more of a name. */
static bool is_label_next(struct slice s) {
	if (s.length < 2 || s.at[0] != '.') return false;
	slice_drop(&s, 1);
	return target_placeholder(s).length || (char_is(s.at[0], CHAR_HOST) && s.at[0] != '.');
}

/* A placeholder must not be the end of the host: that would be whatever host a client likes. NULL, or what is wrong. */
static const char *check_authority(struct slice authority) {
	if (!authority.length) return "has no host";
	while (authority.length) {
		struct slice name = target_placeholder(authority);
		if (!name.length && authority.at[0] != ':' && !char_is(authority.at[0], CHAR_HOST))
			return "has a host that is none";
		slice_drop(&authority, 1 + name.length);
		if (name.length && !is_label_next(authority))
			return "has a placeholder in its host without '.' and text behind";
	}
	return NULL;
}

static const char *check_octets(struct slice target) {
	for (; target.length; slice_drop(&target, 1)) {
		unsigned char c = (unsigned char)target.at[0];
		if (c < ' ' || c == 127) return "has a control character";
		if (c == '%' && !path_is_encoded(target)) return "has a broken percent-encoding";
	}
	return NULL;
}

const char *target_check(struct slice target) {
	const char *wrong = check_octets(target);
	if (wrong) return wrong;
	if (!target_is_local(target)) return check_authority(target_authority(target));
	if (target.length > 1 && is_one_of(target.at[1], "/\\"))
		return "begins with two slashes, which would be a host: write its scheme, or one slash";
	return NULL;
}
