/* apache.c - see apache.h. A directive is read by a function that returns NULL, or what is wrong with it. */
#include "gatling/site/access/apache.h"

#include <stdlib.h>

#include "gatling/base/lines.h"
#include "gatling/base/slice.h"
#include "gatling/site/access/directives.h"
#include "gatling/site/rules/rules.h"

#define CLOSED ", so access is denied"

enum { LINE_MAX_HERE = 8190 };

enum section_kind {
	SECTION_MODULE, /* or a version: known whether it is in force */
	SECTION_UNSURE, /* it may not be in force */
	SECTION_SKIPPED,
	SECTION_FILES,
	SECTION_LIMIT,
	SECTION_GROUP
};

struct section {
	enum section_kind kind;
	struct slice name, arguments;
	unsigned rule, group; /* of SECTION_FILES: its rule, or 0; of SECTION_GROUP: the index of the group */
};

/* What is known of a password, for each rule. */
enum { HAS_TYPE = 1, HAS_NAME = 2, HAS_FILE = 4, HAS_ALL = 7 };

struct reader {
	struct access_rules *access;
	struct apache_findings *findings;
	char *text;
	struct lines lines;
	struct section section[ACCESS_DEPTH_MAX];
	unsigned depth;
	unsigned rule;      /* to which directives belong now */
	bool other_methods; /* they are about methods other than GET */
	unsigned limited;   /* sections of kind SECTION_LIMIT */
	unsigned skipped, unsure;
	unsigned char known[ACCESS_RULES_MAX]; /* of passwords */
	bool rewrites, no_links;               /* RewriteEngine is on; Options forbid symbolic links */
	unsigned user_line;                    /* the first that asks for one */
};

static const char no_memory[] = "there is no memory, or this is too much" CLOSED;
static const char unread[] = "this cannot be read" CLOSED;

static bool next_is_last(struct slice *text, struct slice *word) {
	return access_next_word(text, word) && !slice_trim(*text).length;
}

/* Returns whether the innermost section is a group of tests. */
static bool in_group(const struct reader *r) { return r->depth && r->section[r->depth - 1].kind == SECTION_GROUP; }

static struct access_rule *rule_now(const struct reader *r) { return &r->access->rule[r->rule]; }

/* Returns whether a name is one of those, with '|' between them. */
static bool is_one_of(struct slice name, const char *names) {
	struct slice rest = slice_of(names);
	while (rest.length)
		if (slice_equal_nocase(name, rules_take_until(&rest, '|'))) return true;
	return false;
}

/* --- patterns of names --- */

/* Copies a regular expression as far as it means the same to Apache (PCRE) and to regcomp(3), without the backslashes
 * that a quoted word may have. Returns false if it may not. */
static bool copy_regex(struct slice s, char *out, bool *nocase) {
	static const char plain[] = "_-~,:;=@%!&/#' <>", special[] = ".+*?()[]{}|^$\\/-";
	bool operand = false; /* there is something that * may repeat */
	*nocase = text_skip(&s, SLICE("(?i)"));
	for (size_t i = 0; i < s.length; i++) {
		const char c = s.at[i], next = i + 1 < s.length ? s.at[i + 1] : '\0';
		const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		const bool ends_branch = next == '|' || next == ')' || !next;
		*out++ = c;
		if (letter || (c && strchr(plain, c)) || c == '.') {
			operand = true;
		} else if (c == '\\') {
			if (!next || !strchr(special, next)) return false;
			if (next == '/' || next == '-') out--;
			*out++ = next;
			i++;
			operand = true;
		} else if (c == '[') {
			const size_t begin = i;
			while (++i < s.length && (s.at[i] != ']' || i == begin + 1)) {
				if (s.at[i] == '[' || s.at[i] == '\\' || s.at[i] == ']' || (unsigned char)s.at[i] >= 127) return false;
				*out++ = s.at[i];
			}
			if (i == s.length) return false;
			*out++ = ']';
			operand = true;
		} else if (c == '*' || c == '+' || c == '?') {
			if (!operand || next == '*' || next == '+' || next == '?' || next == '{') return false;
		} else if (c == '(') {
			if (next == '?') { /* (?:...) is a group, too */
				if (i + 2 >= s.length || s.at[i + 2] != ':') return false;
				i += 2;
			}
			if (i + 1 >= s.length || s.at[i + 1] == ')' || s.at[i + 1] == '|' || s.at[i + 1] == '*') return false;
			operand = false;
		} else if (c == '|') {
			if (ends_branch || !i) return false;
			operand = false;
		} else if (c == ')') {
			operand = true;
		} else if (c == '^' || c == '$') {
			operand = false;
		} else {
			return false;
		}
	}
	*out = '\0';
	return true;
}

/* Takes a pattern, which may be quoted and have backslashes, off the front. */
static bool next_pattern(struct slice *text, struct slice *pattern) {
	*text = slice_trim(*text);
	if (!text->length) return false;
	const char quote = text->at[0];
	if (quote != '"' && quote != '\'') {
		pattern->at = text->at;
		pattern->length = slice_until(*text, ' ');
		slice_drop(text, pattern->length);
		return true;
	}
	const struct slice rest = slice_rest(*text, 1);
	*pattern = slice_first(rest, slice_until(rest, quote));
	if (pattern->length == rest.length) return false;
	*text = slice_rest(rest, pattern->length + 1);
	/* backslashes before a quote or a backslash would have to be removed */
	for (size_t i = 0; i + 1 <= pattern->length; i++)
		if (pattern->at[i] == '\\' && (i + 1 == pattern->length || pattern->at[i + 1] == '\\')) return false;
	return true;
}

/* Makes the rule for the names of a section <Files> or <FilesMatch>. */
static const char *begin_rule(struct reader *r, struct section *s) {
	static const char not_understood[] =
		"the pattern of this section is not understood" CLOSED ": use letters, \\. | ( ) [ ] * + ? ^ $ only";
	char text[ACCESS_PATTERN_MAX + 1];
	struct slice arguments = s->arguments, pattern;
	bool regex = slice_equal_nocase(s->name, SLICE("FilesMatch")), nocase;
	if (!next_pattern(&arguments, &pattern)) return not_understood;
	if (!regex && slice_equal(pattern, SLICE("~"))) {
		regex = true;
		if (!next_pattern(&arguments, &pattern)) return not_understood;
	}
	if (slice_trim(arguments).length || !pattern.length || pattern.length > ACCESS_PATTERN_MAX) return not_understood;
	if (regex ? !copy_regex(pattern, text, &nocase)
			  : memchr(pattern.at, '[', pattern.length) || memchr(pattern.at, '\\', pattern.length) ||
					memchr(pattern.at, '/', pattern.length))
		return not_understood;
	struct access_rule *rule = access_add_rule(r->access);
	if (!rule) return no_memory;
	if (!regex) {
		rule->names = ACCESS_OF_GLOB;
		rule->glob = pattern;
	} else if (regcomp(&rule->regex, text, REG_EXTENDED | (nocase ? REG_ICASE : 0)) != 0) {
		return not_understood;
	} else {
		rule->names = ACCESS_OF_REGEX;
	}
	s->rule = r->rule = r->access->count - 1;
	return NULL;
}

/* --- tests --- */

/* Adds a test to the rule, in a group of its own kind if there is none around it. */
static struct access_test *add_test(struct reader *r, enum access_kind kind) {
	struct access_rule *rule = rule_now(r);
	if (!rule->tests && !access_add_test(rule, ACCESS_ANY)) return NULL;
	return access_add_test(rule, kind);
}

/* Returns the group to which a test is added, or NULL if the rule has none yet. */
static const struct access_test *group_now(const struct reader *r) {
	const struct access_rule *rule = rule_now(r);
	if (r->depth && r->section[r->depth - 1].kind == SECTION_GROUP) return &rule->test[r->section[r->depth - 1].group];
	return rule->tests ? &rule->test[0] : NULL;
}

/* Parses an address of Apache: ADDRESS, ADDRESS/BITS, or the first parts of an IPv4 address. */
static bool parse_net(struct slice word, struct peer_net *net) {
	enum { PARTS = 4 };
	char text[PEER_MAX];
	const bool is_six = memchr(word.at, ':', word.length);
	unsigned parts = 1;
	if (word.length >= sizeof text - sizeof ".0.0.0/24") return false;
	char *end = text_copy(text, word);
	*end = '\0';
	if (is_six || memchr(word.at, '/', word.length)) {
		if (!peer_net_parse(text, net) || peer_net_is_unix(net)) return false;
		/* Apache refuses networks of all addresses */
		return is_six ? net->bits && !peer_is_ipv4(&net->first) : net->bits > 8 * PEER_IPV4_AT;
	}
	if (end > text && end[-1] == '.') *--end = '\0';
	for (const char *c = text; *c; c++) {
		parts += *c == '.';
		if (*c != '.' && !text_is_digit(*c)) return false;
	}
	if (parts > PARTS || end == text) return false;
	for (unsigned i = parts; i < PARTS; i++) end = text_copy(end, SLICE(".0"));
	*end++ = '/';
	*text_copy_number(end, 8 * parts) = '\0';
	return peer_net_parse(text, net);
}

static const char *add_nets(struct reader *r, struct access_nets *nets, struct slice words) {
	static const char wrong[] =
		"only addresses are understood here: 192.0.2.1, 192.0.2, 192.0.2.0/24 or 2001:db8::/32" CLOSED;
	struct slice word;
	struct peer_net net;
	unsigned count = 0;
	for (; access_next_word(&words, &word); count++) {
		if (!parse_net(word, &net)) return wrong;
		if (!access_add_net(r->access, nets, &net)) return no_memory;
	}
	return words.length || !count ? wrong : NULL;
}

static const char *read_require(struct reader *r, struct slice words) {
	static const char wrong[] =
		"of Require, only \"all granted\", \"all denied\", \"ip\", \"valid-user\" and \"user\" are understood" CLOSED;
	struct slice word, list;
	bool negated = false;
	if (r->other_methods) return "what is required for methods other than GET is not understood" CLOSED;
	if (!access_next_word(&words, &word)) return wrong;
	if (slice_equal_nocase(word, SLICE("not"))) {
		negated = true;
		if (!access_next_word(&words, &word)) return wrong;
	}
	const struct access_test *group = group_now(r);
	if (negated && (!group || group->kind != ACCESS_ALL)) return "\"not\" is understood in <RequireAll> only" CLOSED;
	enum access_kind kind;
	list = slice_trim(words);
	if (slice_equal_nocase(word, SLICE("all"))) {
		if (!next_is_last(&words, &word)) return wrong;
		if (slice_equal_nocase(word, SLICE("granted"))) kind = ACCESS_EVERYBODY;
		else if (slice_equal_nocase(word, SLICE("denied"))) kind = ACCESS_NOBODY;
		else return wrong;
	} else if (slice_equal_nocase(word, SLICE("ip"))) {
		kind = ACCESS_NETS;
	} else if (slice_equal_nocase(word, SLICE("valid-user"))) {
		kind = ACCESS_VALID_USER;
		if (list.length) return wrong;
	} else if (slice_equal_nocase(word, SLICE("user"))) {
		kind = ACCESS_USERS;
		if (!list.length) return wrong;
		while (access_next_word(&words, &word)) {}
		if (words.length) return unread;
	} else {
		return wrong;
	}
	struct access_test *test = add_test(r, kind);
	if (!test) return no_memory;
	if (kind >= ACCESS_VALID_USER && !r->user_line) r->user_line = r->lines.number;
	test->negated = negated;
	test->users = list;
	return kind == ACCESS_NETS ? add_nets(r, &test->nets, list) : NULL;
}

/* --- Apache 2.2 --- */

static const char *read_order(struct reader *r, struct slice words) {
	struct slice word;
	if (!next_is_last(&words, &word)) return unread;
	const bool allow_first =
		slice_equal_nocase(word, SLICE("allow,deny")) || slice_equal_nocase(word, SLICE("mutual-failure"));
	if (!allow_first && !slice_equal_nocase(word, SLICE("deny,allow"))) return unread;
	rule_now(r)->order.given = true;
	if (!r->other_methods) rule_now(r)->order.allow_first = allow_first;
	return NULL;
}

static const char *read_allow_or_deny(struct reader *r, struct slice words, bool *all, struct access_nets *nets) {
	struct slice word;
	if (!access_next_word(&words, &word) || !slice_equal_nocase(word, SLICE("from")))
		return "\"from\" is missing" CLOSED;
	rule_now(r)->order.given = true;
	struct slice rest = words;
	if (next_is_last(&rest, &word) && slice_equal_nocase(word, SLICE("all"))) {
		*all |= !r->other_methods;
		return NULL;
	}
	if (!r->other_methods) return add_nets(r, nets, words);
	struct access_nets ignored = {0};
	const char *wrong = add_nets(r, &ignored, words);
	free(ignored.net);
	return wrong;
}

static const char *read_allow(struct reader *r, struct slice words) {
	struct access_order *o = &rule_now(r)->order;
	return read_allow_or_deny(r, words, &o->allow_all, &o->allow);
}

static const char *read_deny(struct reader *r, struct slice words) {
	struct access_order *o = &rule_now(r)->order;
	return read_allow_or_deny(r, words, &o->deny_all, &o->deny);
}

static const char *read_satisfy(struct reader *r, struct slice words) {
	struct slice word;
	if (r->limited || !next_is_last(&words, &word)) return unread;
	const bool any = slice_equal_nocase(word, SLICE("any"));
	if (!any && !slice_equal_nocase(word, SLICE("all"))) return unread;
	rule_now(r)->order.given = true;
	rule_now(r)->order.satisfy_any = any;
	return NULL;
}

/* --- passwords --- */

/* Sets what a file may say once. */
static const char *set_once(struct reader *r, struct slice words, struct slice *value, unsigned char has) {
	struct slice word;
	if (!next_is_last(&words, &word) || !word.length) return unread;
	if (value->at && !slice_equal(*value, word)) return "another one is given above" CLOSED;
	*value = word;
	r->known[r->rule] |= has;
	return NULL;
}

static const char *read_auth_type(struct reader *r, struct slice words) {
	struct slice word;
	if (!next_is_last(&words, &word) || !slice_equal_nocase(word, SLICE("Basic")))
		return "of AuthType, only Basic is understood" CLOSED;
	r->known[r->rule] |= HAS_TYPE;
	return NULL;
}

static const char *read_auth_name(struct reader *r, struct slice words) {
	return set_once(r, words, &r->access->realm, HAS_NAME);
}

static const char *read_auth_user_file(struct reader *r, struct slice words) {
	return set_once(r, words, &r->access->users, HAS_FILE);
}

static const char *read_auth_provider(struct reader *r, struct slice words) {
	struct slice word;
	(void)r;
	return next_is_last(&words, &word) && slice_equal_nocase(word, SLICE("file"))
			   ? NULL
			   : "of AuthBasicProvider, only file is understood" CLOSED;
}

/* Ignores groups of users: to require one of them is not understood. */
static const char *read_nothing(struct reader *r, struct slice words) {
	(void)r;
	(void)words;
	return NULL;
}

static const struct directive {
	struct slice name;
	const char *(*read)(struct reader *r, struct slice words);
} directives[] = {
	{SLICE("Require"), read_require},
	{SLICE("Order"), read_order},
	{SLICE("Allow"), read_allow},
	{SLICE("Deny"), read_deny},
	{SLICE("Satisfy"), read_satisfy},
	{SLICE("AuthType"), read_auth_type},
	{SLICE("AuthName"), read_auth_name},
	{SLICE("AuthUserFile"), read_auth_user_file},
	{SLICE("AuthBasicProvider"), read_auth_provider},
	{SLICE("AuthGroupFile"), read_nothing},
};

static const struct directive *find_directive(struct slice name) {
	for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
		if (slice_equal_nocase(name, directives[i].name)) return &directives[i];
	return NULL;
}

/* --- sections --- */

/* Begins what is about access: from now on it counts, and belongs to the section <Files> around it. */
static const char *begin_access(struct reader *r) {
	r->findings->any = true;
	if (r->unsure) return "whether the section around this is in force is not known" CLOSED;
	for (unsigned i = 0; i < r->depth; i++)
		if (r->section[i].kind == SECTION_FILES && !r->section[i].rule) return begin_rule(r, &r->section[i]);
	return NULL;
}

static const char *begin_limit(struct reader *r, struct slice methods, bool except) {
	bool gets = false;
	struct slice word;
	if (r->limited) return "a section <Limit> in another one is not understood" CLOSED;
	while (access_next_word(&methods, &word)) gets |= slice_equal(word, SLICE("GET"));
	if (methods.length) return unread;
	r->other_methods = gets == except;
	return NULL;
}

/* Begins a group of tests. */
static const char *begin_group(struct reader *r, struct section *s) {
	const char *wrong = begin_access(r);
	const bool none = slice_equal_nocase(s->name, SLICE("RequireNone"));
	if (wrong) return wrong;
	if (slice_trim(s->arguments).length || r->other_methods) return unread;
	const struct access_test *around = group_now(r);
	if (none && (!around || around->kind != ACCESS_ALL))
		return "<RequireNone> is understood in <RequireAll> only" CLOSED;
	struct access_test *group = add_test(r, slice_equal_nocase(s->name, SLICE("RequireAll")) ? ACCESS_ALL : ACCESS_ANY);
	if (!group) return no_memory;
	group->negated = none;
	s->group = rule_now(r)->tests - 1;
	return NULL;
}

static const char *begin_condition(struct section *s) {
	struct slice arguments = s->arguments, word;
	enum directive_condition holds = CONDITION_UNKNOWN;
	if (slice_equal_nocase(s->name, SLICE("IfVersion"))) holds = directive_if_version(arguments);
	else if (slice_equal_nocase(s->name, SLICE("IfModule")) && next_is_last(&arguments, &word))
		holds = directive_if_module(word);
	s->kind = holds == CONDITION_TRUE ? SECTION_MODULE : holds == CONDITION_FALSE ? SECTION_SKIPPED : SECTION_UNSURE;
	return NULL;
}

static const char *begin_known_section(struct reader *r, struct section *s) {
	if (is_one_of(s->name, "IfModule|IfVersion|IfDefine|IfDirective|IfFile|IfSection|If|ElseIf|Else"))
		return begin_condition(s);
	if (is_one_of(s->name, "RequireAll|RequireAny|RequireNone")) {
		s->kind = SECTION_GROUP;
		return begin_group(r, s);
	}
	if (in_group(r)) return unread;
	if (is_one_of(s->name, "Limit|LimitExcept")) {
		s->kind = SECTION_LIMIT;
		return begin_limit(r, s->arguments, slice_equal_nocase(s->name, SLICE("LimitExcept")));
	}
	if (!is_one_of(s->name, "Files|FilesMatch")) return "this section is not understood" CLOSED;
	s->kind = SECTION_FILES;
	for (unsigned i = 0; i < r->depth; i++)
		if (r->section[i].kind == SECTION_FILES) return "a section <Files> in another one is not understood" CLOSED;
	return r->limited ? unread : NULL;
}

/* line: without its brackets */
static const char *begin_section(struct reader *r, struct slice line) {
	if (r->depth == ACCESS_DEPTH_MAX) return "there are too many sections within each other" CLOSED;
	struct section *s = &r->section[r->depth], skipped = {.kind = SECTION_SKIPPED};
	*s = skipped;
	s->name.at = line.at;
	while (s->name.length < line.length && line.at[s->name.length] != ' ' && line.at[s->name.length] != '\t')
		s->name.length++;
	s->arguments = slice_rest(line, s->name.length);
	const char *wrong = r->skipped ? NULL : begin_known_section(r, s);
	if (wrong) return wrong;
	r->depth++;
	r->skipped += s->kind == SECTION_SKIPPED;
	r->unsure += s->kind == SECTION_UNSURE;
	r->limited += s->kind == SECTION_LIMIT;
	return NULL;
}

static const char *end_group(struct reader *r, const struct section *s) {
	struct access_rule *rule = rule_now(r);
	struct access_test *group = &rule->test[s->group];
	bool grants = group->negated || group->kind == ACCESS_ANY;
	group->end = rule->tests;
	for (unsigned i = s->group + 1; i < group->end && !grants;) {
		grants = !rule->test[i].negated;
		i = rule->test[i].kind >= ACCESS_ANY ? rule->test[i].end : i + 1;
	}
	if (!grants) return "nothing in this section grants access" CLOSED;
	return group->end == s->group + 1 ? "this section is empty" CLOSED : NULL;
}

static const char *end_section(struct reader *r, struct slice name) {
	const struct section *s = r->depth ? &r->section[r->depth - 1] : NULL;
	if (!s || !slice_equal_nocase(slice_trim(name), s->name)) return "this ends no section" CLOSED;
	r->depth--;
	r->skipped -= s->kind == SECTION_SKIPPED;
	r->unsure -= s->kind == SECTION_UNSURE;
	r->limited -= s->kind == SECTION_LIMIT;
	if (s->kind == SECTION_LIMIT) r->other_methods = false;
	if (s->kind == SECTION_FILES) r->rule = 0;
	return s->kind == SECTION_GROUP ? end_group(r, s) : NULL;
}

/* --- lines --- */

static struct slice name_of(struct slice line) {
	size_t n = 0;
	while (n < line.length && line.at[n] != ' ' && line.at[n] != '\t') n++;
	return slice_first(line, n);
}

bool apache_begins(struct slice line) {
	const struct slice name = name_of(line);
	return slice_starts(line, SLICE("<")) || find_directive(name) || directive_is_harmless(name);
}

/* Reads what Options say about listings, and about symbolic links. */
static void read_options(struct reader *r, struct slice words) {
	struct slice word;
	bool any = false, lists = false, only = false, links = false, no_links = false;
	while (access_next_word(&words, &word)) {
		const char sign = word.at[0];
		only |= sign != '+' && sign != '-';
		slice_drop(&word, sign == '+' || sign == '-');
		if (slice_equal_nocase(word, SLICE("All")) || slice_equal_nocase(word, SLICE("Indexes"))) {
			any = true;
			lists = sign != '-';
		}
		if (is_one_of(word, "All|FollowSymLinks|SymLinksIfOwnerMatch")) *(sign == '-' ? &no_links : &links) = true;
	}
	r->no_links |= no_links || (only && !links);
	if (!any && !only) return;
	for (unsigned i = 0; i < r->depth; i++)
		if (lists && r->section[i].kind != SECTION_MODULE) return;
	r->access->listed = lists;
	r->access->unlisted = !lists;
}

static const char *read_harmless(struct reader *r, struct slice name, struct slice words) {
	if (in_group(r)) return unread;
	if (directive_forbids(name, words)) {
		r->findings->any = true;
		return "this forbids something, and rules of Apache are not understood" CLOSED
			   ": write it in _redirects (/path/* /404.html 404!) and remove the line";
	}
	if (!r->findings->ignored) r->findings->ignored = r->lines.number;
	r->rewrites |= is_one_of(name, "RewriteEngine") && is_one_of(slice_trim(words), "on");
	if (slice_equal_nocase(name, SLICE("Options"))) read_options(r, words);
	if (slice_equal_nocase(name, SLICE("IndexIgnore"))) r->access->unlisted = true;
	return NULL;
}

static const char *read_line(struct reader *r, struct slice line) {
	if (slice_starts(line, SLICE("</")))
		return slice_ends(line, SLICE(">")) ? end_section(r, slice_first(slice_rest(line, 2), line.length - 3))
											: unread;
	if (slice_starts(line, SLICE("<")))
		return slice_ends(line, SLICE(">")) ? begin_section(r, slice_first(slice_rest(line, 1), line.length - 2))
											: unread;
	if (r->skipped) return NULL;
	const struct slice name = name_of(line), words = slice_rest(line, name.length);
	const struct directive *d = find_directive(name);
	if (!d) {
		if (directive_is_harmless(name)) return read_harmless(r, name, words);
		return r->unsure ? NULL : "this is no directive of Apache that is known here" CLOSED;
	}
	const char *wrong = begin_access(r);
	if (wrong) return wrong;
	if (in_group(r) && d->read != read_require) return unread;
	if (r->limited) rule_now(r)->get_only = true;
	return d->read(r, words);
}

/* Returns whether a backslash is the last octet of the line that was taken last, which continues on the next one. */
static bool is_continued(const struct reader *r, struct slice line) {
	const char *end = line.at + line.length;
	return slice_ends(line, SLICE("\\")) && end < r->lines.rest.at && (*end == '\n' || *end == '\r');
}

/* Takes the next line, with those that continue it, off the front, and trims it. Returns false at the end. As in Apache
 * nothing takes the place of the backslash, so that a word may continue, too. */
static bool next_line(struct reader *r, struct slice *line) {
	if (!lines_next(&r->lines, line)) return false;
	bool more = is_continued(r, *line);
	while (more) {
		const char *next = r->lines.rest.at;
		struct slice part;
		if (!lines_next(&r->lines, &part)) break;
		more = is_continued(r, part);
		const size_t length = (size_t)(part.at + part.length - next); /* with the blanks in front of it */
		memmove(r->text + (line->at + line->length - 1 - r->text), next, length);
		line->length = line->length - 1 + length;
	}
	*line = slice_trim(*line);
	return true;
}

/* Ends the groups around the tests, and checks whether what they need is there. */
static const char *finish(struct reader *r) {
	bool any = false;
	if (r->depth) return "a section is not ended" CLOSED;
	for (unsigned i = 0; i < r->access->count; i++) {
		struct access_rule *rule = &r->access->rule[i];
		if (rule->tests) rule->test[0].end = rule->tests;
		if (access_depends_on_user(rule) && (r->known[i] | r->known[0]) != HAS_ALL)
			return "a password needs AuthType Basic, AuthName and AuthUserFile in this file" CLOSED;
		any |= rule->tests || rule->order.given;
		if (rule->order.satisfy_any && !rule->tests && !r->access->rule[0].tests)
			return "\"Satisfy Any\" is understood only with Require in this file" CLOSED;
	}
	if (r->rewrites && r->no_links)
		return "with RewriteEngine on, but without Options FollowSymLinks, Apache denies all access" CLOSED;
	if (r->findings->any && !any) return "there is no Require" CLOSED;
	return NULL;
}

const char *apache_read(struct access_rules *a, char *text, size_t length, struct apache_findings *findings) {
	struct reader r = {.access = a,
					   .findings = findings,
					   .text = text,
					   .lines = lines_of((struct slice){.at = text, .length = length})};
	struct slice line;
	const char *wrong = NULL;
	*a = (struct access_rules){.of_apache = true};
	*findings = (struct apache_findings){0};
	if (!access_add_rule(a)) return no_memory;
	while (!wrong && next_line(&r, &line)) {
		if (line.length > LINE_MAX_HERE || memchr(line.at, '\0', line.length)) wrong = unread;
		else if (line.length && line.at[0] != '#') wrong = read_line(&r, line);
	}
	findings->line = r.lines.number;
	if (wrong) return wrong;
	findings->line = r.user_line;
	return finish(&r);
}
