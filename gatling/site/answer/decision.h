/* decision.h - a request while it is decided by answer.c, and the parts that answer it: answer_rule.c by a rule of
 * _redirects, answer_file.c with a file (answer_coding.c says in which coding, answer_variant.c what a client that asks
 * for it gets in its place), answer_missing.c without one, answer_redirect.c with a redirect that no rule makes,
 * answer_error.c with an error; answer_access.c says whom a password or an address admits. */
#ifndef GATLING_SITE_ANSWER_DECISION_H
#define GATLING_SITE_ANSWER_DECISION_H

#include "gatling/client/arrival.h"
#include "gatling/site/answer_room.h"
#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

struct decision {
	const struct site_context *context;
	const struct request *request;
	const struct arrival *arrival;
	struct response *response;
	const struct site *site;
	struct lookup lookup; /* of the file that is sent; headers: the owner's for this path */
	struct slice filled;  /* lines of the owner's fields with replaced names */
	struct slice vary;    /* a Vary line, if the conditions of rules were looked at; or empty */
	struct slice host;
	bool admitted; /* to the site: its error pages may be shown */
	bool guarded;  /* somebody else might not be admitted: caches must not store it for all */
	bool unlisted; /* the directory is not listed */
	bool passed;   /* a rule passes it on, whatever its method */
	bool ruled;    /* the status is that of a rule */
	unsigned rule; /* the line of the last rule of _redirects that applied; 0: none did */
	/* path points to PATH_ROOM bytes behind a slash. They contain the site's prefix, then (from local on) the decoded
	 * path of the request, or the one that a rule has put in its place, of that length, and then perhaps the name of an
	 * index; NUL-terminated. */
	char *path, *local;
	size_t length;
};

enum { PATH_ROOM = SITE_PREFIX_MAX + TARGET_MAX + 16 };

/* Returns the path of the request in the site, decoded. */
static inline struct slice decision_path(const struct decision *d) {
	return (struct slice){.at = d->local, .length = d->length};
}

/* Returns the same path with its leading slash. */
static inline struct slice decision_slashed_path(const struct decision *d) {
	return (struct slice){.at = d->local - 1, .length = d->length + 1};
}

static inline bool decision_names_directory(const struct decision *d) {
	return d->length == 0 || d->local[d->length - 1] == '/';
}

/* --- answer_error.c, which the others use --- */

/* Writes the server's own lines (at most AUTH_LINES_MAX bytes), followed by the owner's, to the room, and returns
 * them. */
struct slice decision_lines(const struct decision *d, struct slice own, const struct header_set *headers);

/* Returns the owner's lines for a response without a file. The fields of a file contain most of them. */
struct slice decision_owner_lines(const struct decision *d);

/* Makes the request wait for a job. */
void decision_wait(struct decision *d, struct job *job);

/* Makes the request wait until a thread has prefetched the file at path. Returns false if it cannot wait. */
bool decision_wait_for_disk(struct decision *d, struct slice path);

/* Calls cache_find() for the request, which may have waited. */
int decision_find(const struct decision *d, struct lookup *l, struct resource **resource);

/* Answers with the status, and with a page of the site if it has one. */
void answer_error(struct decision *d, int status);

/* Answers with 503 if an error is temporary, so that it is unknown what is there. Returns whether it did. */
bool answer_unknown(struct decision *d, int error);

/* --- answer_access.c --- */

/* Returns whether a guard admits the request. If not, fills in the response. */
bool decision_admitted(struct decision *d, const struct guard *guard);

/* The same for the guard of a path, and for that of the decision's path. Whatever answers without the file at that path
 * asks the latter first, since the file would have been guarded: so the response does not say what is there. */
bool decision_admitted_to(struct decision *d, struct slice path);
bool decision_admitted_without_file(struct decision *d);

/* --- answer_redirect.c --- */

/* Redirects to the location in the room, which ends at `end`. */
void decision_redirect(struct decision *d, int status, const char *end);

/* Redirects to the same path with or without a slash at its end: to a decoded path in the site, with the query of the
 * request. */
void answer_redirect(struct decision *d, struct slice path);

/* Redirects a request over plain HTTP to HTTPS. */
void answer_https_redirect(struct decision *d);

/* Redirects a request for a missing file to the fallback. */
void answer_fallback_redirect(struct decision *d);

/* Where there is no file: redirects to the target of a symlink if that is a URL, as the original gatling does. Returns
 * whether there is an answer. */
bool answer_link(struct decision *d);

/* --- answer_file.c --- */

/* Answers with 200 or 304, with the file that the same request led to a moment ago (answer_cache.h). Returns false if
 * that has to be decided anew. */
bool answer_known_file(const struct site_context *c, const struct request *q, const struct arrival *arrival,
					   const struct known_answer *known, struct response *r);

/* Answers with the requested file, or the index of a directory. status: 200, or that of a rule. Returns 0, or an errno
 * if there is no answer yet. */
int answer_exact(struct decision *d, int status);

/* Answers a request for /about or /about/ with about.html. status: as for answer_exact(), or 301, which redirects to
 * /about instead. Returns 0, or an errno if there is no answer yet: a temporary one, or ENOENT, also if about.html may
 * not be sent. */
int answer_page(struct decision *d, int status);

/* Redirects to the path, which is that of a directory, if that has an index. Returns what answer_exact() does. */
int answer_index_redirect(struct decision *d);

/* Does what answer_exact() does, but answers with the page where there is no file, whether or not there is a directory,
 * as other servers of static sites do. */
int answer_file_or_page(struct decision *d, int status);

/* --- answer_coding.c --- */

/* Returns the best of a set of codings, or -1 if the client accepts none. */
int decision_best_of(const struct request *request, const struct resource *resource, unsigned set);

/* Returns the best coding of those that exist or can be generated while the request waits, or -1. Has a better one
 * generated for later requests. */
int decision_best_coding(const struct request *request, struct cache *cache, struct resource *resource, int64_t now_ms);

/* Returns the best coding of those that exist, or -1, for a request that does not wait. Has better ones generated. */
int decision_coding_at_once(const struct request *request, struct cache *cache, struct resource *resource,
							int64_t now_ms);

/* --- answer_variant.c --- */

/* Returns a new reference to what a client has of a resource in a coding that it names, whether or not that is the one
 * which it would be sent now, if it has not changed (If-None-Match): then the answer is 304. chosen: that one, which
 * comes first. offered: the client may have it as a difference. Otherwise returns NULL. */
struct representation *decision_held(const struct request *request, const struct resource *resource, bool offered,
									 struct representation *chosen);

/* Returns whether the response has the offered fields of a resource, unless it is guarded. */
bool decision_offers(const struct request *request, const struct resource *resource);

/* Returns what is sent in place of a representation: the difference to what the client has, if it is smaller. *waits:
 * the request waits for it. */
struct representation *decision_difference(struct decision *d, struct resource *resource,
										   struct representation *representation, bool *waits);

/* Returns the line with the digest of what is sent, or an absent slice. *waits: the request waits for it. */
struct slice decision_digest(struct decision *d, struct resource *resource, struct representation *representation,
							 bool *waits);

/* --- answer_rule.c --- */

/* Does the same as answer_known_file(), with an upstream. */
bool answer_known_upstream(const struct site_context *c, const struct request *q, const struct arrival *arrival,
						   const struct known_answer *known, struct response *r);

/* Answers by the first rule of _redirects that applies. has_file: there may be a file, so that the rule must have a
 * '!'. Returns whether there was one. */
bool answer_by_rule(struct decision *d, bool has_file);

/* Has a rule for the scripts of the site run the index.php of the requested directory. Returns false if there is no
 * such file or rule. */
bool answer_index_script(struct decision *d);

/* Returns whether there are such a file and rule, or that is unknown. */
bool decision_has_index_script(struct decision *d);

/* --- answer_missing.c --- */

/* Reports a symbolic link to a directory, on the way to a missing file, that leads out of the chroot(2) in which the
 * server is. Where the names of directories are known no system call is made, unless there is a link that leads
 * nowhere. */
void answer_report_link(const struct decision *d);

/* Answers a request for which there is no file. */
void answer_missing(struct decision *d);

#endif
