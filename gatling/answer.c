/* answer.c - see answer.h. From top to bottom: method, site, path, who asks, forced redirects, the file, or what takes
 * its place. */
#include "gatling/answer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "gatling/path.h"

enum { PATH_ROOM = SITE_PREFIX_MAX + TARGET_MAX + 16 };

const struct slice answer_allow = SLICE("GET, HEAD, OPTIONS");

static const struct slice index_name = SLICE("index.html"), page_suffix = SLICE(".html");

/* One request on its way. */
struct asking {
	const struct content *content;
	const struct request *request;
	const struct arrival *arrival;
	struct response *response;
	const struct site *site;
	const struct header_set *headers; /* the owner's for this path, and */
	struct slice filled;              /* those with values that are filled in, as lines */
	struct slice host;
	bool admitted;  /* to the site: its pages may be shown */
	bool stands_in; /* what is sent now is for want of what was asked for, */
	bool error;     /* with a status that says so */
	/* In PATH_ROOM bytes behind a slash: the path of the site's directory, below it that of the request, decoded, of
	 * that length, and then perhaps the name of an index; NUL-terminated. */
	char *path;
	size_t length;
};

void answer_status(struct response *r, int status) {
	r->status = status;
	r->job = NULL;
	r->file = NULL;
	r->ranges = 0;
	r->source.owner = NULL;
	r->page = r->location = r->lines = r->user = (struct slice){0};
}

static int status_of(int error) {
	if (tree_passes(error)) return 503;
	switch (error) {
	case EACCES:
	case EPERM:
	case EXDEV: return 403;
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL: /* a name that this file system cannot have */
	case EILSEQ:
	case ESTALE: return 404;
	default: return 500;
	}
}

/* --- what the answer is --- */

static size_t append(char *out, struct slice s) {
	if (s.length) memcpy(out, s.at, s.length);
	return s.length;
}

/* The owner's fields for what is no file, which would have most of them. */
static struct slice header_lines(const struct asking *a) {
	static _Thread_local char text[HEADER_OCTETS_MAX];
	if (!a->headers) return (struct slice){0};
	size_t n = header_set_lines(a->headers, a->stands_in || a->response->status >= 400, text);
	n += append(text + n, a->filled);
	return (struct slice){.at = text, .length = n};
}

static char *location_room(void) {
	static _Thread_local char location[LOCATION_MAX];
	return location;
}

/* The same path with a slash behind it. It starts with exactly one slash whatever was asked for, so it stays on this
 * host, and is encoded, so it holds no line break. */
static void redirect_to_directory(struct asking *a, struct slice path) {
	struct response *r = a->response;
	char *location = location_room();
	size_t n = 0;
	r->status = 301;
	location[n++] = '/';
	n += path_encode(path, location + n);
	location[n++] = '/';
	n += path_encode_target(a->request->query, location + n);
	r->location = (struct slice){.at = location, .length = n};
}

/* To the same place over HTTPS; this was asked over plain HTTP. */
static void redirect_to_https(const struct asking *a) {
	struct response *r = a->response;
	char *location = location_room();
	size_t n = append(location, SLICE("https://"));
	answer_status(r, 301);
	if (!a->host.length) { /* HTTP/1.0, and no address to name instead */
		r->status = 400;
		return;
	}
	n += host_name(a->host, location + n);
	if (a->content->https_port != 443) n += (size_t)sprintf(location + n, ":%u", a->content->https_port);
	n += path_encode_target(a->request->path, location + n);
	n += path_encode_target(a->request->query, location + n);
	r->location = (struct slice){.at = location, .length = n};
}

/* What is missing here is looked for in another place. */
static void redirect_to_fallback(struct asking *a) {
	struct response *r = a->response;
	const char *fallback = a->content->options->fallback;
	char *location = location_room();
	size_t n = append(location, (struct slice){.at = fallback, .length = strlen(fallback)});
	if (location[n - 1] == '/') n--;
	n += path_encode_target(a->request->path, location + n);
	n += path_encode_target(a->request->query, location + n);
	r->status = 302;
	r->location = (struct slice){.at = location, .length = n};
}

static struct slice local_path(const struct asking *a) {
	return (struct slice){.at = a->path + a->site->prefix.length, .length = a->length};
}

/* The same with its leading slash. */
static struct slice slashed_path(const struct asking *a) {
	return (struct slice){.at = a->path + a->site->prefix.length - 1, .length = a->length + 1};
}

static bool names_directory(const struct asking *a) { return a->length == 0 || local_path(a).at[a->length - 1] == '/'; }

static bool guarded(const struct site *site) { return site->guard || site->outer; }

static struct wanted wanted_of(const struct asking *a, size_t length) {
	return (struct wanted){.path = {.at = a->path, .length = length},
						   .headers = a->headers,
						   .guarded = guarded(a->site),
						   .stands_in = a->stands_in,
						   .error = a->error};
}

/* --- errors --- */

/* The page that the site has for a status; absent: none. */
static struct slice page_name(int status) {
	if (status == 404) return SLICE("404.html");
	if (status == 403) return SLICE("403.html");
	return status >= 500 && status != 501 ? SLICE("50x.html") : (struct slice){0};
}

/* The best that is there for this client, without waiting; NULL: none. */
static struct file *choose_now(const struct request *q, const struct resource *r) {
	struct coding_weights weights = coding_weights(q);
	int coding = coding_choose(&weights, r->there);
	return coding == -1 ? NULL : r->as[coding];
}

/* With a page of the site, if it has one. */
static void answer_error(struct asking *a, int status) {
	struct response *r = a->response;
	struct slice name = page_name(status);
	char path[SITE_PREFIX_MAX + 16];
	struct resource *resource;
	struct slice user = r->user;
	answer_status(r, status);
	r->user = user;
	r->lines = header_lines(a);
	if (!name.length || !a->admitted) return;
	size_t n = append(path, a->site->prefix);
	n += append(path + n, name);
	struct wanted wanted = {.path = {.at = path, .length = n},
							.headers = a->headers,
							.guarded = guarded(a->site),
							.stands_in = true,
							.error = true};
	if (cache_find(a->content->cache, &wanted, a->content->now_ms, &resource) != 0) return;
	if (resource->guard[0] || resource->guard[1]) return;
	if (!(r->file = choose_now(a->request, resource))) return;
	r->lines = a->filled; /* the file has the others */
	file_retain(r->file);
}

/* Whether the guard lets the request through; if not, that is the answer. */
static bool admitted(struct asking *a, struct guard *guard) {
	struct response *r = a->response;
	struct admission admission;
	switch (guards_check(a->content->guards, guard, a->request, a->arrival->peer, a->arrival->patient,
						 a->content->now_ms, &admission)) {
	case GUARD_ADMITS: r->user = admission.user; return true;
	case GUARD_ASKS: answer_status(r, 401); break;
	case GUARD_FORBIDS: answer_error(a, 403); return false;
	case GUARD_LIMITS: answer_status(r, 429); break;
	case GUARD_BUSY: answer_error(a, 503); return false;
	case GUARD_WAITS:
		answer_status(r, 0);
		r->job = admission.job;
		break;
	}
	r->lines = admission.lines;
	return false;
}

static bool admitted_by(struct asking *a, struct guard *const *guard, int guards) {
	for (int i = 0; i < guards; i++)
		if (guard[i] && !admitted(a, guard[i])) return false;
	return true;
}

/* --- files --- */

static void answer_file(const struct asking *a) {
	const struct request *q = a->request;
	struct response *r = a->response;
	const struct validators *v = &r->file->validators;
	int status = precondition_status(q, v);
	if (status) r->status = status;
	if (status == 412) {
		file_release(r->file);
		r->file = NULL;
		r->lines = header_lines(a);
	}
	if (status) return;
	struct slice field = request_field(q, FIELD_RANGE);
	if (!field.at || q->method != METHOD_GET || r->file->gzipped || !precondition_range(q, v)) return;
	int ranges = range_parse(field, r->file->size, r->range);
	if (ranges == 0) return;
	r->status = ranges > 0 ? 206 : 416;
	r->ranges = ranges > 0 ? ranges : 0;
	if (r->status == 416) r->lines = header_lines(a);
}

/* A large file has no entity-tag until it has been read. That is done when it is asked for first; who asks for one of
 * which that is done soon, or says something about its entity-tag, waits. */
static bool waits_for_etag(struct asking *a, struct resource *resource, enum coding coding) {
	const struct file *f = resource->as[coding];
	if (f->validators.etag.at || f->gzipped) return false;
	struct job *job = cache_identify(a->content->cache, resource, coding);
	if (!job || !a->arrival->patient) return false;
	if (!cache_identifies_soon(a->content->cache, f, precondition_wants_etag(a->request))) return false;
	answer_status(a->response, 0);
	a->response->job = job;
	return true;
}

/* The representation for this client, of several. NULL: none, and that is the answer, or it has to be waited for. */
static struct file *choose_coding(struct asking *a, struct resource *resource) {
	struct response *r = a->response;
	struct coding_weights weights = coding_weights(a->request);
	int coding = coding_choose(&weights, resource->there | resource->makes);
	if (coding != -1 && resource->makes >> coding & 1) {
		if (waits_for_etag(a, resource, coding == CODING_GZIP ? CODING_IDENTITY : CODING_GZIP)) return NULL;
		struct job *job = a->arrival->patient ? cache_make(a->content->cache, resource, (enum coding)coding) : NULL;
		if (job) {
			answer_status(r, 0);
			r->job = job;
			return NULL;
		}
		int other = coding_choose(&weights, resource->there);
		if (other == -1) {
			answer_error(a, 503);
			return NULL;
		}
		coding = other;
	}
	if (coding == -1) {
		answer_error(a, 406);
		if (!r->lines.length) r->lines = SLICE("Vary: Accept-Encoding\r\n");
	}
	return coding == -1 ? NULL : resource->as[coding];
}

static struct file *choose(struct asking *a, struct resource *r) {
	bool one = (r->there | r->makes) == 1U << CODING_IDENTITY;
	struct file *f = one ? r->as[CODING_IDENTITY] : choose_coding(a, r);
	return f && f->fd != -1 && waits_for_etag(a, r, f->coding) ? NULL : f;
}

/* With a file of the path in a, of that many bytes, and the status: 200, or that of a rule. 0; or an errno, and no
 * answer. */
static int answer_found(struct asking *a, size_t length, int status) {
	struct response *r = a->response;
	struct wanted wanted = wanted_of(a, length);
	struct resource *resource;
	struct file *file;
	for (bool again = false;; again = true) {
		int error = cache_find(a->content->cache, &wanted, a->content->now_ms, &resource);
		if (error) return error;
		bool is_guarded = resource->guard[0] || resource->guard[1];
		if (is_guarded && !admitted_by(a, resource->guard, GUARDS_OF_PATH)) return 0;
		if (!(file = choose(a, resource))) return 0;
		if (again || file->fd == -1 || !file_changed(file)) break;
		cache_drop(a->content->cache, resource);
	}
	file_retain(file);
	r->file = file;
	r->status = status;
	r->lines = a->filled;
	if (status == 200) answer_file(a);
	return 0;
}

/* The index behind a directory, and the NUL. The length of the whole. */
static size_t complete(struct asking *a) {
	size_t n = a->site->prefix.length + a->length;
	if (names_directory(a)) n += append(a->path + n, index_name);
	a->path[n] = '\0';
	return n;
}

/* --- what takes the place of a file --- */

/* Whether the guards of a path let the request through at which there is no file, so that nobody sees what is there. */
static bool admitted_nevertheless(struct asking *a) {
	struct guard *guard[GUARDS_OF_PATH];
	struct slice path = {.at = a->path, .length = a->site->prefix.length + a->length};
	guards_of_path(a->content->guards, path, guard);
	bool is = admitted_by(a, guard, GUARDS_OF_PATH);
	for (int i = 0; i < GUARDS_OF_PATH; i++) guard_release(guard[i]);
	return is;
}

/* /about is about.html, where there is nothing else of that name: so links are written for static hosts. */
static bool answer_page(struct asking *a, int status) {
	size_t n = a->site->prefix.length + a->length;
	if (names_directory(a)) return false;
	for (size_t i = n; i && a->path[i - 1] != '/'; i--)
		if (a->path[i - 1] == '.') return false;
	memcpy(a->path + n, page_suffix.at, page_suffix.length + 1);
	bool answered = answer_found(a, n + page_suffix.length, status) == 0;
	a->path[n] = '\0';
	return answered;
}

/* A symlink that leads to a URL sends there, as in the original. */
static bool follow_link(struct asking *a) {
	char target[TARGET_MAX];
	if (!tree_link(&a->content->tree, a->path, target, sizeof target) || !strstr(target, "://")) return false;
	char *location = location_room();
	size_t n = 0;
	for (const char *at = target; *at; at++) { /* visible ASCII is the owner's, the rest is encoded */
		if (*at > ' ' && *at < 127) location[n++] = *at;
		else n += path_encode((struct slice){.at = at, .length = 1}, location + n);
	}
	a->response->status = 301;
	a->response->location = (struct slice){.at = location, .length = n};
	return true;
}

/* Puts the path of a target of the owner's in the place of what was asked for. false: it leads nowhere. */
static bool rewrite(struct asking *a, struct slice target) {
	const char *end = target.length ? memchr(target.at, '?', target.length) : NULL;
	if (end) target.length = (size_t)(end - target.at);
	if (target.length > TARGET_MAX || path_decode(target, a->path + a->site->prefix.length, &a->length) != 0)
		return false;
	return !site_hides(a->site, local_path(a));
}

static void answer_rule(struct asking *a, const struct redirect *rule, bool forced) {
	if (rule->status >= 300 && rule->status < 400) {
		a->response->status = rule->status;
		a->response->location = rule->target;
		return;
	}
	a->error = rule->status >= 400;
	a->stands_in = !forced || a->error;
	int error = rewrite(a, rule->target) ? answer_found(a, complete(a), rule->status) : ENOENT;
	if (error == EISDIR && !names_directory(a)) {
		if (!admitted_nevertheless(a)) return;
		a->path[a->site->prefix.length + a->length++] = '/';
		error = answer_found(a, complete(a), rule->status);
	}
	if (!error || (error == ENOENT && answer_page(a, rule->status))) return;
	if (!admitted_nevertheless(a)) return;
	answer_error(a, rule->status == 200 ? status_of(error) : rule->status);
}

/* Whether a rule of _redirects says what the answer is. */
static bool follow_rules(struct asking *a, bool forced) {
	struct redirect rule;
	struct redirect_request asked = {.host = a->host, .path = slashed_path(a), .query = a->request->query};
	if (!redirect_rules_match(a->site->redirects, &asked, forced, location_room(), &rule)) return false;
	answer_rule(a, &rule, forced);
	return true;
}

static bool wants_json(struct slice query) {
	while (query.length) { /* it begins with '?', each further part with '&' */
		const char *end = memchr(query.at + 1, '&', query.length - 1);
		size_t length = end ? (size_t)(end - query.at) : query.length;
		struct slice part = {.at = query.at + 1, .length = length - 1};
		if (slice_equal(part, SLICE("format=json"))) return true;
		query.at += length;
		query.length -= length;
	}
	return false;
}

static void answer_listing(struct asking *a) {
	struct response *r = a->response;
	struct listings_found found;
	struct coding_weights weights = coding_weights(a->request);
	bool json = wants_json(a->request->query), gzip = a->content->options->gzip_cache;
	int coding = coding_choose(&weights, 1U << CODING_IDENTITY | (gzip ? 1U << CODING_GZIP : 0)); /* never -1 */
	struct listing_wanted wanted = {.path = *a->path ? a->path : ".",
									.title = local_path(a),
									.format = json ? LISTING_JSON : LISTING_HTML,
									.coding = (enum coding)coding};
	int error = listings_find(a->content->listings, &wanted, a->arrival->patient, &found);
	if (error) {
		answer_error(a, status_of(error));
		return;
	}
	r->job = found.job;
	r->status = found.job ? 0 : 200;
	if (found.job) return;
	a->stands_in = true;
	r->lines = header_lines(a);
	r->source = (struct source){.fill = listings_fill,
								.release = listings_reader_free,
								.owner = found.reader,
								.length = found.length,
								.memory = LISTINGS_READER,
								.coding = found.coding,
								.type = json ? "application/json" : "text/html; charset=utf-8"};
}

static void answer_missing(struct asking *a) {
	struct stat st;
	if (follow_link(a)) return;
	if (a->site->redirects && follow_rules(a, false)) return;
	a->path[a->site->prefix.length + a->length] = '\0'; /* without the index */
	if (names_directory(a) && tree_stat(&a->content->tree, *a->path ? a->path : ".", &st) == 0) {
		if (!S_ISDIR(st.st_mode)) answer_error(a, 404);
		else if (a->content->options->listings) answer_listing(a);
		else answer_error(a, 403);
	} else if (a->content->options->fallback) {
		redirect_to_fallback(a);
	} else {
		answer_error(a, 404);
	}
}

/* --- all kinds --- */

/* What the owner wants responses for this path to say. false: too much, and that is the answer. */
static bool find_headers(struct asking *a) {
	const struct header_set *set = header_rules_match(a->site->headers, a->host, slashed_path(a));
	struct slice filled = header_rules_filled(a->site->headers);
	if (set && set->octets + filled.length > HEADER_OCTETS_MAX) {
		site_complain(a->site, set->line);
		answer_error(a, 500);
		return false;
	}
	a->headers = set;
	a->filled = filled;
	return true;
}

static void answer_path(struct asking *a) {
	int error = answer_found(a, complete(a), 200);
	if (!error || (error == ENOENT && answer_page(a, 200))) return;
	if (error == ENAMETOOLONG) answer_error(a, 404); /* so is the name of what would guard it */
	else if (!admitted_nevertheless(a)) return;
	else if (error == EISDIR && !names_directory(a)) redirect_to_directory(a, local_path(a));
	else if (status_of(error) == 404) answer_missing(a);
	else answer_error(a, status_of(error));
}

/* Where a certificate authority looks for proof that a name is ours, over plain HTTP (RFC 8555, section 8.3); below a
 * site. */
static const struct slice acme_challenge = SLICE(".well-known/acme-challenge/");

/* Of what is asked for over plain HTTP when all else is sent to HTTPS: a file below acme_challenge, or 404 with nothing
 * of the site's. false: it is sent there, too. */
static bool answer_challenge(struct asking *a) {
	struct response *r = a->response;
	if (!slice_starts(local_path(a), acme_challenge) || names_directory(a) || !a->admitted) return false;
	if (a->site->headers && !find_headers(a)) r->status = 500;
	else if (answer_found(a, complete(a), 200) != 0) r->status = 404;
	else if (r->status < 400 || r->status == 416) return true;
	if (r->file) file_release(r->file); /* a page for an error, of whoever may not have the file */
	if (r->status == 404) answer_status(r, 404);
	return r->status == 404;
}

/* The owner's fields for the path, if it is one: preflights ask for those of CORS, and send no passwords. */
static void answer_options(struct asking *a, bool is_path) {
	answer_status(a->response, 204);
	if (!is_path || !a->site->headers || !find_headers(a)) return;
	a->response->lines = header_lines(a);
}

void answer(const struct content *c, const struct request *q, const struct arrival *arrival, struct response *r) {
	answer_status(r, 200);
	if (q->method == METHOD_UNKNOWN) r->status = 501;
	if (q->method == METHOD_NOT_ALLOWED) r->status = 405;
	if (r->status != 200) return;

	struct slice host = q->host.at ? q->host : arrival->host;
	char room[1 + PATH_ROOM];
	struct asking a = {.content = c, .request = q, .arrival = arrival, .response = r, .host = host, .path = room + 1};
	room[0] = '/';
	a.site = sites_find(c->sites, host, arrival->port, c->now_ms);
	int status = a.site ? 0 : status_of(errno);
	if (a.site) status = path_decode(q->path, a.path + append(a.path, a.site->prefix), &a.length);
	if (!status && site_hides(a.site, local_path(&a))) status = 404;
	a.admitted = a.site && !guarded(a.site);
	if (q->method == METHOD_OPTIONS) {
		answer_options(&a, !status);
		return;
	}
	/* decided by what is asked for, not by how that is written */
	if (c->https_port && !arrival->secure && arrival->port) {
		if (status || !answer_challenge(&a)) redirect_to_https(&a);
		return;
	}
	if (!a.site) {
		r->status = status;
		return;
	}
	if (status) {
		answer_error(&a, status);
		return;
	}
	if (a.site->headers && !find_headers(&a)) return;
	if (!a.admitted) {
		struct guard *const guard[] = {a.site->outer, a.site->guard};
		if (!admitted_by(&a, guard, 2)) return;
		a.admitted = true;
	}
	if (!a.site->redirects || !follow_rules(&a, true)) answer_path(&a);
}
