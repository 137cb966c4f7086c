/* redirect_target.c - see redirect_target.h. */
#include "gatling/site/rules/redirect_target.h"

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/path.h"
#include "gatling/site/rules/pattern.h"

static bool is_one_of(char c, const char *set) { return c && strchr(set, c); }

/* Takes the first c, and all that follows, off the end of the text. Returns that, or an absent slice if there is no
 * c. */
static struct slice take_from(struct slice *text, char c) {
	size_t n = slice_until(*text, c);
	struct slice end = n < text->length ? slice_rest(*text, n) : (struct slice){0};
	text->length = n;
	return end;
}

struct redirect_target redirect_target_split(struct slice text) {
	struct redirect_target t = {.fragment = take_from(&text, '#')};
	if (t.fragment.at) slice_drop(&t.fragment, 1);
	t.query = take_from(&text, '?');
	t.scheme = slice_first(text, host_scheme_length(text));
	t.path = slice_rest(text, t.scheme.length);
	if (!t.scheme.length) return t;
	t.authority = slice_first(t.path, slice_until(t.path, '/'));
	slice_drop(&t.path, t.authority.length);
	return t;
}

/* Returns the authority without a port that is the default of http or https. */
static struct slice without_default_port(struct slice authority) {
	static const struct slice port[] = {SLICE(":80"), SLICE(":443"), SLICE(":")};
	for (int i = 0; i < 3; i++)
		if (slice_ends(authority, port[i])) return slice_first(authority, authority.length - port[i].length);
	return authority;
}

bool redirect_target_same_host(struct slice a, struct slice b) {
	return a.at && b.at && slice_equal_nocase(without_default_port(a), without_default_port(b));
}

/* --- filling in --- */

/* How an octet may be written: TEXT is encoded already, and separates parts of a query. VALUE is encoded by a client,
 * which may not add a separator. SEGMENT is the same as part of a segment, in which '+' is no blank, and ';' begins a
 * parameter for some servers. SEGMENTS are not encoded, and part of a path. OCTETS are not encoded, and part of
 * something else. */
enum target_part { TEXT, VALUE, SEGMENT, SEGMENTS, OCTETS };

/* Adds the first octet of a text, which is not unreserved, but no second '/' at the start: "//" would begin a host.
 * Characters that are allowed in a path stay as they are: encoded, they would mean something else (RFC 3986, section
 * 2.2). */
static void add_octet(struct text *t, struct slice s, enum target_part kind) {
	static const char *const kept[] = {[TEXT] = "!$'()*+,;:@=&?#",
									   [VALUE] = "!$'()*+,;:@=",
									   [SEGMENT] = "!$'()*,:@=",
									   [SEGMENTS] = "!$'()*+,;:@=&",
									   [OCTETS] = ""};
	char encoded[3], c = s.at[0];
	struct slice octet = slice_first(s, 1);
	if (c == '/' && kind != SEGMENT && slice_equal(text_written(t), SLICE("/"))) return;
	if (c == '/' && kind == SEGMENT) octet = SLICE("%2F"); /* path_encode() would keep it */
	else if (c == '+' && kind == SEGMENT) octet = SLICE("%20");
	else if (!is_one_of(c, kept[kind]) && !(kind <= SEGMENT && path_is_encoded(s)))
		octet = (struct slice){.at = encoded, .length = path_encode(octet, encoded)};
	text_add(t, octet);
}

/* Adds text so that it stays in its part of the URL. */
static void add(struct text *t, struct slice s, enum target_part kind) {
	for (size_t n; s.length && !t->overflow; slice_drop(&s, n)) {
		n = chars_span(s, CHAR_UNRESERVED);
		if (n) {
			text_add(t, slice_first(s, n));
		} else {
			add_octet(t, s, kind);
			n = 1;
		}
	}
}

/* Adds a part of the target with its names replaced: values that are not encoded as `octets`, others as `encoded`.
 * Returns false if the host would not be valid. */
static bool add_part(struct text *t, const struct redirect_filling *f, struct slice part, enum target_part octets,
					 enum target_part encoded) {
	bool in_host = part.at == f->target.authority.at, is_encoded;
	while (part.length && !t->overflow) {
		struct slice text = slice_first(part, slice_until(part, ':')), value;
		add(t, text, TEXT);
		slice_drop(&part, text.length);
		if (!part.length) break;
		/* in a host a ':' before a digit is that of a port */
		const bool named = !in_host || pattern_placeholder(part).length;
		const size_t length = named ? f->find(f->context, slice_rest(part, 1), &value, &is_encoded) : 0;
		slice_drop(&part, 1 + length);
		if (!length) add(t, SLICE(":"), TEXT);
		else if (in_host && (!value.length || chars_span(value, CHAR_HOST) != value.length)) return false;
		else add(t, value, is_encoded ? encoded : octets);
	}
	return true;
}

/* Adds the query of a request, unless there is nothing behind its '?'. */
static void add_query(struct text *t, struct slice query) {
	if (query.length > 1) add(t, query, TEXT);
}

bool redirect_target_join(struct slice filled, struct slice query, char *buffer, struct slice *url) {
	struct text t = text_begin(buffer, REDIRECT_TARGET_MAX);
	text_add(&t, filled);
	add_query(&t, query);
	*url = text_written(&t);
	return !t.overflow;
}

enum redirect_filled redirect_target_fill(const struct redirect_filling *f, char *buffer, struct slice *url) {
	struct text t = text_begin(buffer, REDIRECT_TARGET_MAX);
	text_add(&t, f->target.scheme);
	if (!add_part(&t, f, f->target.authority, OCTETS, VALUE)) return REDIRECT_BAD_HOST;
	const size_t host_end = text_written(&t).length;
	(void)add_part(&t, f, f->target.path, SEGMENTS, SEGMENT);
	if (f->no_dots && path_has_dots(slice_rest(text_written(&t), host_end))) return REDIRECT_MISFIT;
	if (!f->path_only) {
		if (!f->target.query.at) add_query(&t, f->query);
		(void)add_part(&t, f, f->target.query, OCTETS, VALUE);
		if (f->target.fragment.at) text_add_char(&t, '#');
		(void)add_part(&t, f, f->target.fragment, OCTETS, VALUE);
	}
	*url = text_written(&t);
	return t.overflow ? REDIRECT_MISFIT : REDIRECT_FILLED;
}

/* --- checking --- */

/* Returns whether the text begins with a '.' and more of a name. */
static bool is_label_next(struct slice s) {
	if (s.length < 2 || s.at[0] != '.') return false;
	slice_drop(&s, 1);
	return pattern_placeholder(s).length || (char_is(s.at[0], CHAR_HOST) && s.at[0] != '.');
}

/* Returns what is wrong with the authority. A placeholder may not be the end of the host: then a client could choose
 * any host. */
static const char *check_authority(struct slice authority) {
	if (!authority.length) return "has no host";
	while (authority.length) {
		struct slice name = pattern_placeholder(authority);
		if (!name.length && authority.at[0] != ':' && !char_is(authority.at[0], CHAR_HOST))
			return "has an invalid host";
		slice_drop(&authority, 1 + name.length);
		if (name.length && !is_label_next(authority))
			return "has a placeholder in its host without '.' and text behind it";
	}
	return NULL;
}

static const char *check_octets(struct slice s) {
	for (; s.length; slice_drop(&s, 1)) {
		unsigned char c = (unsigned char)s.at[0];
		if (c < ' ' || c == 127) return "has a control character";
		if (c == '%' && !path_is_encoded(s)) return "has a broken percent-encoding";
	}
	return NULL;
}

const char *redirect_target_check(struct slice text) {
	struct redirect_target target = redirect_target_split(text);
	const char *wrong = check_octets(text);
	if (wrong) return wrong;
	if (target.authority.at) return check_authority(target.authority);
	if (target.path.length > 1 && is_one_of(target.path.at[1], "/\\"))
		return "begins with two slashes, as a host does: write its scheme, or one slash";
	return NULL;
}
