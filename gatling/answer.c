/* answer.c - see answer.h. From top to bottom: method, site, path, file, preconditions, ranges. */
#include "gatling/answer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "gatling/listing.h"
#include "gatling/path.h"

const struct slice answer_allow = SLICE("GET, HEAD, OPTIONS");

static const struct slice index_name = SLICE("index.html");

void answer_status(struct response *r, int status) {
	r->status = status;
	r->file = NULL;
	r->ranges = 0;
	r->page = NULL;
	r->page_length = 0;
	r->location = (struct slice){0};
	r->user = (struct slice){0};
}

static int status_of(int error) {
	switch (error) {
	case EACCES:
	case EPERM:
	case EXDEV: return 403;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EAGAIN: return 503;
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

/* 301 to the same path with a slash behind it. It starts with exactly one slash whatever was asked for, so it stays on
 * this host, and is encoded, so it holds no line break. */
static void redirect_to_directory(struct response *r, struct slice path, struct slice query) {
	static _Thread_local char location[LOCATION_MAX];
	size_t n = 0;
	answer_status(r, 301);
	location[n++] = '/';
	n += path_encode(path, location + n);
	location[n++] = '/';
	if (query.length) memcpy(location + n, query.at, query.length);
	r->location = (struct slice){.at = location, .length = n + query.length};
}

/* Where a certificate authority looks for proof that a name is ours (RFC 8555, section 8.3): over plain HTTP. */
static const struct slice acme_challenge = SLICE("/.well-known/acme-challenge/");

static bool starts_with(struct slice s, struct slice start) {
	return s.length >= start.length && memcmp(s.at, start.at, start.length) == 0;
}

static size_t append(char *out, struct slice s) {
	if (s.length) memcpy(out, s.at, s.length);
	return s.length;
}

/* 301 to the same place over HTTPS. */
static void redirect_to_https(struct response *r, struct slice authority, unsigned port, const struct request *q) {
	static _Thread_local char location[LOCATION_MAX];
	size_t n = append(location, SLICE("https://"));
	answer_status(r, 301);
	if (!authority.length) { /* HTTP/1.0, and no address to name instead */
		r->status = 400;
		return;
	}
	n += host_name(authority, location + n);
	if (port != 443) n += (size_t)sprintf(location + n, ":%u", port);
	n += append(location + n, q->path);
	n += append(location + n, q->query);
	r->location = (struct slice){.at = location, .length = n};
}

static void answer_listing(const struct content *c, const char *path, struct slice title, struct response *r) {
	int error = listing_make(c->cache, *path ? path : ".", title, &r->page, &r->page_length);
	if (error) answer_status(r, status_of(error));
}

static void answer_file(const struct request *q, struct response *r) {
	const struct validators *v = &r->file->validators;
	int status = precondition_status(q, v);
	if (status == 412) {
		file_release(r->file);
		answer_status(r, 412);
		return;
	}
	if (status) {
		r->status = status;
		return;
	}
	struct slice field = request_field(q, FIELD_RANGE);
	if (!field.at || q->method != METHOD_GET || !precondition_range(q, v)) return;
	int ranges = range_parse(field, r->file->size, r->range);
	if (ranges == 0) return;
	r->status = ranges > 0 ? 206 : 416;
	r->ranges = ranges > 0 ? ranges : 0;
}

void answer(const struct content *c, const struct request *q, const struct endpoint *local, struct response *r) {
	char path[SITE_PREFIX_MAX + TARGET_MAX + 16]; /* and the index, and the NUL */
	size_t prefix, length;

	answer_status(r, 200);
	if (q->method == METHOD_UNKNOWN) r->status = 501;
	if (q->method == METHOD_NOT_ALLOWED) r->status = 405;
	if (q->method == METHOD_OPTIONS) r->status = 204;
	if (r->status != 200) return;

	struct slice host = q->host.at ? q->host : local->host;
	if (c->https_port && !local->secure && local->port && !starts_with(q->path, acme_challenge)) {
		redirect_to_https(r, host, c->https_port, q);
		return;
	}
	if (!sites_find(c->sites, host, local->port, c->now_ms, path, &prefix)) {
		r->status = 404;
		return;
	}
	int status = path_decode(q->path, path + prefix, &length);
	if (status) {
		r->status = status;
		return;
	}
	struct slice asked = {.at = path + prefix, .length = length};
	length += prefix;
	bool directory = asked.length == 0 || path[length - 1] == '/';
	size_t directory_length = length;
	if (directory) {
		memcpy(path + length, index_name.at, index_name.length);
		length += index_name.length;
	}
	path[length] = '\0';

	int error =
		length >= PATH_MAX ? ENAMETOOLONG : cache_find(c->cache, (struct slice){path, length}, c->now_ms, &r->file);
	if (!error) {
		answer_file(q, r);
	} else if (error == EISDIR && !directory) {
		redirect_to_directory(r, asked, q->query);
	} else if (directory && (error == ENOENT || error == EISDIR) && c->listings) {
		path[directory_length] = '\0';
		answer_listing(c, path, asked, r);
	} else if (directory && (error == ENOENT || error == EISDIR)) {
		path[directory_length] = '\0';
		int fd = cache_open(c->cache, *path ? path : ".", 0);
		r->status = fd == -1 ? status_of(errno) : 403;
		if (fd != -1) close(fd);
	} else {
		r->status = status_of(error);
	}
}
