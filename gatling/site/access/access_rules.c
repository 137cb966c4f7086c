/* access_rules.c - see access_rules.h. */
#include "gatling/site/access/access_rules.h"

#include <stdlib.h>
#include <string.h>

#include "gatling/http/request.h"

/* --- making --- */

static void nets_free(struct access_nets *nets) { free(nets->net); }

static void rule_free(struct access_rule *r) {
	for (unsigned i = 0; i < r->tests; i++) nets_free(&r->test[i].nets);
	nets_free(&r->order.allow);
	nets_free(&r->order.deny);
	if (r->names == ACCESS_OF_REGEX) regfree(&r->regex);
	free(r->test);
}

void access_rules_free(struct access_rules *a) {
	for (unsigned i = 0; i < a->count; i++) rule_free(&a->rule[i]);
	free(a->rule);
	*a = (struct access_rules){0};
}

struct access_rule *access_add_rule(struct access_rules *a) {
	struct access_rule *rule = a->count == ACCESS_RULES_MAX ? NULL : realloc(a->rule, (a->count + 1) * sizeof *rule);
	if (!rule) return NULL;
	a->rule = rule;
	rule += a->count++;
	*rule = (struct access_rule){0};
	return rule;
}

struct access_test *access_add_test(struct access_rule *r, enum access_kind kind) {
	struct access_test *test = r->tests == ACCESS_TESTS_MAX ? NULL : realloc(r->test, (r->tests + 1) * sizeof *test);
	if (!test) return NULL;
	r->test = test;
	test += r->tests++;
	*test = (struct access_test){.kind = kind};
	return test;
}

bool access_add_net(struct access_rules *a, struct access_nets *nets, const struct peer_net *net) {
	enum { AT_ONCE = 16 };
	if (a->nets == ACCESS_NETS_MAX) return false;
	if (nets->count % AT_ONCE == 0) {
		struct peer_net *more = realloc(nets->net, (nets->count + AT_ONCE) * sizeof *more);
		if (!more) return false;
		nets->net = more;
	}
	nets->net[nets->count++] = *net;
	a->nets++;
	return true;
}

bool access_next_word(struct slice *text, struct slice *word) {
	*text = slice_trim(*text);
	if (!text->length) return false;
	const char quote = text->at[0];
	if (quote != '"' && quote != '\'') {
		word->at = text->at;
		word->length = 0;
		while (word->length < text->length && text->at[word->length] != ' ' && text->at[word->length] != '\t')
			word->length++;
		slice_drop(text, word->length);
	} else {
		const struct slice rest = slice_rest(*text, 1);
		*word = slice_first(rest, slice_until(rest, quote));
		if (word->length == rest.length) return false;
		*text = slice_rest(rest, word->length + 1);
		if (text->length && text->at[0] != ' ' && text->at[0] != '\t') {
			text->at = quote == '"' ? "\"" : "'"; /* not empty */
			text->length = 1;
			return false;
		}
	}
	return !memchr(word->at, '\\', word->length) || ((*text = SLICE("\\")), false);
}

/* --- names --- */

/* Returns whether a name matches a pattern with stars, each for any characters, and question marks, each for one. */
static bool glob(struct slice pattern, struct slice name) {
	size_t p = 0, n = 0, star = pattern.length, again = 0;
	while (n < name.length) {
		if (p < pattern.length && pattern.at[p] == '*') {
			star = p++;
			again = n;
		} else if (p < pattern.length && (pattern.at[p] == '?' || pattern.at[p] == name.at[n])) {
			p++;
			n++;
		} else if (star < pattern.length) {
			p = star + 1;
			n = ++again;
		} else {
			return false;
		}
	}
	while (p < pattern.length && pattern.at[p] == '*') p++;
	return p == pattern.length;
}

static bool matches_regex(const regex_t *regex, struct slice name) {
#ifdef REG_STARTEND
	regmatch_t part = {.rm_so = 0, .rm_eo = (regoff_t)name.length};
	return regexec(regex, name.at, 1, &part, REG_STARTEND) == 0;
#else /* musl */
	char text[TARGET_MAX + 1]; /* a name is a part of a target */
	if (name.length >= sizeof text) return false;
	memcpy(text, name.at, name.length);
	text[name.length] = '\0';
	return regexec(regex, text, 0, NULL, 0) == 0;
#endif
}

bool access_matches(const struct access_rule *r, struct slice name) {
	if (r->names == ACCESS_OF_GLOB) return glob(r->glob, name);
	return r->names == ACCESS_OF_ALL || matches_regex(&r->regex, name);
}

/* --- asking --- */

/* Returns whether the client has an address in the networks. unknown: what is returned if that is not known. */
static bool is_in(const struct access_nets *nets, const struct access_client *c, bool unknown) {
	if (!c->peer) return nets->count && unknown;
	for (unsigned i = 0; i < nets->count; i++)
		if (peer_is_in_net(c->peer, &nets->net[i])) return true;
	return false;
}

static bool is_named(struct slice users, struct slice user) {
	struct slice word;
	while (access_next_word(&users, &word))
		if (slice_equal(word, user)) return true;
	return false;
}

/* The tests have the values that those of Apache have (mod_authz_core). negated: what is negated around it. */
static enum access_verdict apply(const struct access_rule *r, unsigned at, const struct access_client *c, bool negated);

static enum access_verdict apply_group(const struct access_rule *r, unsigned at, const struct access_client *c,
									   bool negated) {
	const struct access_test *group = &r->test[at];
	const bool all = group->kind == ACCESS_ALL;
	enum access_verdict result = ACCESS_NEUTRAL;
	for (unsigned i = at + 1; i < group->end;) {
		const enum access_verdict one = apply(r, i, c, negated);
		i = r->test[i].kind >= ACCESS_ANY ? r->test[i].end : i + 1;
		if (one == (all ? ACCESS_DENIED : ACCESS_GRANTED)) return one;
		if (one == ACCESS_NEUTRAL) continue;
		const enum access_verdict weaker = all ? ACCESS_GRANTED : ACCESS_DENIED;
		if (result == ACCESS_NEUTRAL || (one == ACCESS_NEEDS_USER && result == weaker)) result = one;
	}
	return result;
}

static enum access_verdict apply(const struct access_rule *r, unsigned at, const struct access_client *c,
								 bool negated) {
	const struct access_test *t = &r->test[at];
	enum access_verdict result = ACCESS_DENIED;
	negated ^= t->negated;
	switch (t->kind) {
	case ACCESS_NOBODY: break;
	case ACCESS_EVERYBODY: result = ACCESS_GRANTED; break;
	case ACCESS_NETS: result = is_in(&t->nets, c, negated) ? ACCESS_GRANTED : ACCESS_DENIED; break;
	case ACCESS_VALID_USER: result = c->user.at ? ACCESS_GRANTED : ACCESS_NEEDS_USER; break;
	case ACCESS_USERS:
		result = !c->user.at ? ACCESS_NEEDS_USER : is_named(t->users, c->user) ? ACCESS_GRANTED : ACCESS_DENIED;
		break;
	case ACCESS_ANY:
	case ACCESS_ALL: result = apply_group(r, at, c, negated); break;
	}
	if (!t->negated) return result;
	return result == ACCESS_GRANTED ? ACCESS_DENIED : ACCESS_NEUTRAL;
}

enum access_verdict access_tested(const struct access_rule *r, const struct access_client *c) {
	if (!r->tests || (r->get_only && !c->gets)) return ACCESS_DENIED;
	const enum access_verdict verdict = apply(r, 0, c, false);
	return verdict == ACCESS_NEUTRAL ? ACCESS_DENIED : verdict;
}

bool access_ordered(const struct access_rule *r, const struct access_client *c) {
	const struct access_order *o = &r->order;
	if (!o->given || (r->get_only && !c->gets)) return false;
	const bool allowed = o->allow_all || is_in(&o->allow, c, false), denied = o->deny_all || is_in(&o->deny, c, true);
	return o->allow_first ? allowed && !denied : allowed || !denied;
}

bool access_depends_on_user(const struct access_rule *r) {
	for (unsigned i = 0; i < r->tests; i++)
		if (r->test[i].kind == ACCESS_VALID_USER || r->test[i].kind == ACCESS_USERS) return true;
	return false;
}

bool access_depends_on_client(const struct access_rule *r) {
	if (r->get_only || r->order.allow.count || r->order.deny.count || access_depends_on_user(r)) return true;
	for (unsigned i = 0; i < r->tests; i++)
		if (r->test[i].kind == ACCESS_NETS) return true;
	return false;
}
