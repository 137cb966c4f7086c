/* access_rules.h - who may have the files of a directory, as its .htaccess says: by address, by user, by the name of
 * the file. What is tested is a tree, as in Apache's Require; and what Apache 2.2 had instead, Order with Allow and
 * Deny. */
#ifndef GATLING_SITE_ACCESS_ACCESS_RULES_H
#define GATLING_SITE_ACCESS_ACCESS_RULES_H

#include <regex.h>

#include "gatling/base/peer.h"

enum {
	ACCESS_TESTS_MAX = 256,    /* of a rule */
	ACCESS_DEPTH_MAX = 16,     /* groups within groups */
	ACCESS_NETS_MAX = 4096,    /* of a file */
	ACCESS_RULES_MAX = 64,     /* of a file */
	ACCESS_PATTERN_MAX = 1024, /* bytes of the pattern of a rule */
	ACCESS_FILE_MAX = 1024     /* bytes of the path of a file of users */
};

/* Zero: nobody may. */
enum access_verdict {
	ACCESS_DENIED,
	ACCESS_NEEDS_USER, /* a user may change it */
	ACCESS_NEUTRAL,    /* of a part of a tree: it does not matter */
	ACCESS_GRANTED
};

enum access_kind {
	ACCESS_NOBODY,
	ACCESS_EVERYBODY,
	ACCESS_NETS,       /* clients with an address in these networks */
	ACCESS_VALID_USER, /* whoever has a password */
	ACCESS_USERS,      /* these of them */
	ACCESS_ANY,        /* whoever one of the tests in it grants access */
	ACCESS_ALL         /* whoever none of them denies it, and one grants it */
};

struct access_nets {
	struct peer_net *net; /* malloc'd */
	unsigned count;
};

/* A test, or a group of those behind it. */
struct access_test {
	enum access_kind kind;
	bool negated;
	unsigned end; /* of the group: the index behind its last test */
	struct access_nets nets;
	struct slice users; /* names with blanks between them, some of them quoted */
};

/* Order, Allow and Deny of Apache 2.2. */
struct access_order {
	bool given;
	bool allow_first; /* Order allow,deny: only those that are allowed and not denied */
	bool satisfy_any; /* whom it allows need not be granted access by the tests as well */
	bool allow_all, deny_all;
	struct access_nets allow, deny;
};

/* Who may have files whose names match. */
struct access_rule {
	enum { ACCESS_OF_ALL, ACCESS_OF_GLOB, ACCESS_OF_REGEX } names;
	struct slice glob;
	regex_t regex;
	struct access_test *test; /* malloc'd; the first is a group of all. NULL: the rule leaves it to others */
	unsigned tests;
	struct access_order order;
	bool get_only; /* it is about GET and HEAD; who may use other methods is not known */
};

/* What one file says. Slices refer to its text. */
struct access_rules {
	bool of_apache;
	struct access_rule *rule; /* malloc'd; the first is about all names, the last that matches comes first */
	unsigned count;
	unsigned nets;         /* of all rules */
	struct slice realm;    /* the name that is shown with a request for a password */
	struct slice users;    /* the path of Apache's file of users, absolute or relative to the root; absent: none */
	bool unlisted, listed; /* what is there is not listed, or is (again) */
};

void access_rules_free(struct access_rules *access);

/* Adds a rule. Returns it, or NULL if there are too many or no memory. */
struct access_rule *access_add_rule(struct access_rules *access);

/* Adds a test to the rule, which belongs to the groups that are open: whose end is 0. Returns it, or NULL if there are
 * too many or no memory. */
struct access_test *access_add_test(struct access_rule *rule, enum access_kind kind);

/* Adds a network. Returns false if there are too many or no memory. */
bool access_add_net(struct access_rules *access, struct access_nets *nets, const struct peer_net *net);

/* Returns whether a rule is about the file of that name, "" for a directory. */
bool access_matches(const struct access_rule *rule, struct slice name);

/* Who asks. user: whose password was right; absent: it is not known. peer: NULL: the address is not known. */
struct access_client {
	const struct peer *peer;
	struct slice user;
	bool gets; /* the method is GET or HEAD */
};

/* Returns what the tests of a rule say. */
enum access_verdict access_tested(const struct access_rule *rule, const struct access_client *client);

/* Returns whether Order, Allow and Deny of the rule admit the client. */
bool access_ordered(const struct access_rule *rule, const struct access_client *client);

/* Returns whether a user may change what the tests say, or an address what either says. */
bool access_depends_on_user(const struct access_rule *rule);
bool access_depends_on_client(const struct access_rule *rule);

/* Takes the next word, which may be quoted, off the front of the text. Returns false if there is none, or if it cannot
 * be read: then the text is not empty. */
bool access_next_word(struct slice *text, struct slice *word);

#endif
