/* decision.h - one request on its way through answer.c, which decides, and the parts that answer:
 * answer_rule.c by a rule of _redirects, answer_file.c with a file, answer_missing.c where there is none,
 * answer_error.c with an error. */
#ifndef GATLING_SITE_ANSWER_DECISION_H
#define GATLING_SITE_ANSWER_DECISION_H

#include "gatling/site/answer/connection_info.h"
#include "gatling/site/response.h"
#include "gatling/site/site_context.h"

struct decision {
	const struct site_context *context;
	const struct request *request;
	const struct connection_info *arrival;
	struct response *response;
	const struct site *site;
	struct lookup lookup; /* of what is sent; headers: the owner's for this path, and */
	struct slice filled;  /* those with values that are filled in, as lines */
	struct slice host;
	bool admitted; /* to the site: its pages may be shown */
	bool passed;   /* a rule passes it on: it does not matter whether files are served with its method */
	/* In PATH_ROOM bytes behind a slash: the path of the site's directory, below it (from local on) that of the
	 * request, decoded, of that length, and then perhaps the name of an index; NUL-terminated. */
	char *path, *local;
	size_t length;
};

enum { PATH_ROOM = SITE_PREFIX_MAX + TARGET_MAX + 16 };

/* The path of the request in the site, decoded. */
static inline struct slice decision_path(const struct decision *d) {
	return (struct slice){.at = d->local, .length = d->length};
}

/* The same with its leading slash. */
static inline struct slice decision_slashed_path(const struct decision *d) {
	return (struct slice){.at = d->local - 1, .length = d->length + 1};
}

static inline bool decision_names_directory(const struct decision *d) {
	return d->length == 0 || d->local[d->length - 1] == '/';
}

/* --- answer_error.c, which the others use --- */

/* Returns the server's own lines, of AUTH_LINES_MAX bytes at most, and behind them those of the owner; until the next
 * call. */
struct slice decision_lines(const struct decision *d, struct slice own, const struct header_set *headers);

/* Returns the owner's fields for a response without a file; a file's own fields contain most of them. */
struct slice decision_owner_lines(const struct decision *d);

/* Makes the request wait for a job. */
void decision_wait(struct decision *d, struct job *job);

/* Makes the request wait until a file can be read without waiting for a disk. Returns false if that cannot be. */
bool decision_wait_for_disk(struct decision *d, struct slice path);

/* Does as cache_find(). */
int decision_find(const struct decision *d, struct lookup *l, struct resource **resource);

/* Answers with the status, and with a page of the site if it has one. */
void answer_error(struct decision *d, int status);

/* Returns whether the realms, which may be NULL, admit the request; if not, that is the answer. */
bool decision_admitted(struct decision *d, struct realm *const *realm);

/* --- answer_file.c --- */

/* Answers with 200 or 304 if the same was asked for a moment ago. Returns whether it does. */
bool answer_known(const struct site_context *c, const struct request *q, struct slice host,
				  const struct connection_info *arrival, struct response *r);

/* Answers with the requested file, or the index of a directory, with the status 200 or that of a rule. Returns 0; or an
 * errno, and there is no answer yet. */
int answer_exact(struct decision *d, int status);

/* Answers as well a request for /about with about.html, as other servers of static sites do. */
int answer_file_or_page(struct decision *d, int status);

/* --- answer_rule.c --- */

/* Returns whether a rule of _redirects has answered the request; forced: one that applies even if there is a file. */
bool answer_by_rule(struct decision *d, bool forced);

/* Returns whether the realms of a path where there is no file admit the request: a refusal hides what is there. */
bool decision_admitted_without_file(struct decision *d);

/* --- answer_missing.c --- */

/* Returns room for a location, LOCATION_MAX bytes, until the next answer. */
char *decision_location(void);

/* Redirects to the same path with a slash behind it. */
void answer_directory_redirect(struct decision *d);

/* Redirects a request over plain HTTP to HTTPS. */
void answer_https_redirect(struct decision *d);

/* Answers where there is no file. */
void answer_missing(struct decision *d);

#endif
