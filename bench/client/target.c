/* target.c - see target.h. */
#include "bench/platform.h"
#include "bench/client/target.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { HOST_MAX = 256, LISTEN_TIMEOUT_S = 2 };

struct parts {
	bool secure;
	char host[HOST_MAX]; /* without the brackets of an IPv6 literal */
	char port[8];
	const char *authority;
	size_t authority_length;
	const char *path; /* with the query; may be empty or begin with '?' */
};

__attribute__((format(printf, 3, 4))) static int fail(char *error, size_t size, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return -1;
}

static int parse_url(struct parts *p, const char *url, char *error, size_t size) {
	static const char clear[] = "http://", secure[] = "https://";
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return fail(error, size,
						"a URL has a blank or a control character in it, which are written as %%20 and so on");
	p->secure = strncasecmp(url, secure, strlen(secure)) == 0;
	if (strncasecmp(url, "ws://", 5) == 0 || strncasecmp(url, "wss://", 6) == 0)
		return fail(error, size, "'%s': use %s with --websocket", url, url[2] == ':' ? clear : secure);
	if (!p->secure && strncasecmp(url, clear, strlen(clear)) != 0)
		return fail(error, size, "'%s' does not begin with http:// or https://", url);
	p->authority = url + (p->secure ? strlen(secure) : strlen(clear));
	p->authority_length = strcspn(p->authority, "/?#");
	p->path = p->authority + p->authority_length;
	const char *end = p->path, *host = p->authority, *host_end;
	if (memchr(host, '@', p->authority_length)) /* the message does not repeat a password */
		return fail(error, size,
					"a URL has no user and password here: httpbench -H 'Authorization: Basic ...' sends them");
	if (*host == '[') {
		host_end = memchr(host, ']', (size_t)(end - host));
		if (!host_end) return fail(error, size, "'%s': the ']' is missing", url);
		host++;
	} else {
		host_end = memchr(host, ':', (size_t)(end - host));
		if (!host_end) host_end = end;
	}
	size_t length = (size_t)(host_end - host);
	if (!length) return fail(error, size, "'%s' has no host", url);
	if (length >= sizeof p->host) return fail(error, size, "the host of '%s' is too long", url);
	memcpy(p->host, host, length);
	p->host[length] = '\0';
	const char *port = *host_end == ']' ? host_end + 1 : host_end;
	size_t digits = (size_t)(end - port);
	snprintf(p->port, sizeof p->port, p->secure ? "443" : "80");
	if (!digits) return 0;
	if (*port != ':' || digits < 2 || digits > 6 || strspn(port + 1, "0123456789") != digits - 1 ||
		strtol(port + 1, NULL, 10) > 65535)
		return fail(error, size, "'%s': what stands behind the host is no port", url);
	snprintf(p->port, sizeof p->port, "%.*s", (int)digits - 1, port + 1);
	return 0;
}

static bool accepts_connections(const struct addrinfo *a) {
	struct timeval limit = {.tv_sec = LISTEN_TIMEOUT_S};
	int fd = platform_socket(a->ai_family, a->ai_socktype, false);
	bool listens = fd != -1 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
				   connect(fd, a->ai_addr, a->ai_addrlen) == 0;
	if (fd != -1) close(fd);
	return listens;
}

static int look_up(struct target *t, const struct parts *p, char *error, size_t size) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all;
	int result = getaddrinfo(p->host, p->port, &hints, &all);
	if (result) return fail(error, size, "cannot find %s: %s", p->host, gai_strerror(result));
	const struct addrinfo *a = all;
	for (const struct addrinfo *i = all; all->ai_next && i; i = i->ai_next) {
		if (!accepts_connections(i)) continue;
		a = i;
		break;
	}
	memcpy(&t->address, a->ai_addr, a->ai_addrlen);
	t->address_length = a->ai_addrlen;
	freeaddrinfo(all);
	return 0;
}

/* Copies the address of an earlier target with the same host and port. Returns false if theirs differ, or there is
 * none. */
static bool use_same(struct target *t, const struct parts *p, const struct target *before) {
	struct parts other = {0};
	char ignored[1];
	if (!before || before == t || parse_url(&other, before->url, ignored, sizeof ignored) == -1) return false;
	if (strcmp(p->host, other.host) != 0 || strcmp(p->port, other.port) != 0) return false;
	t->address = before->address;
	t->address_length = before->address_length;
	return true;
}

static int use_unix(struct target *t, const char *path, char *error, size_t size) {
	struct sockaddr_un *un = (struct sockaddr_un *)&t->address;
	if (strlen(path) >= sizeof un->sun_path)
		return fail(error, size, "the path %s is too long: a unix socket's has at most %zu bytes", path,
					sizeof un->sun_path - 1);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path) + 1);
	t->address_length = sizeof *un;
	return 0;
}

/* Returns the Host field among the headers, or NULL. */
static const char *host_field(const struct target_options *o) {
	for (unsigned i = 0; i < o->headers; i++)
		if (strncasecmp(o->header[i], "Host:", 5) == 0) return o->header[i];
	return NULL;
}

/* Returns whether Content-Length is added: with content, and without it if the method is one that usually has some (RFC
 * 9110, section 8.6), unless the user says what is sent. */
static bool has_length(const struct target_options *o) {
	static const char name[] = "content-length:";
	for (unsigned i = 0; i < o->headers; i++)
		if (strncasecmp(o->header[i], name, strlen(name)) == 0) return false;
	return o->content_length || strcmp(o->method, "POST") == 0 || strcmp(o->method, "PUT") == 0 ||
		   strcmp(o->method, "PATCH") == 0;
}

static int make_request(struct target_bytes *r, const struct parts *p, const struct target_options *o, bool last,
						char *error, size_t size) {
	FILE *out = open_memstream(&r->at, &r->length);
	if (!out) return fail(error, size, "no memory");
	size_t path_length = strcspn(p->path, "#");
	fprintf(out, "%s %s%.*s HTTP/1.1\r\n", o->method, *p->path == '/' ? "" : "/", (int)path_length, p->path);
	if (!host_field(o)) fprintf(out, "Host: %.*s\r\n", (int)p->authority_length, p->authority);
	for (unsigned i = 0; i < o->headers; i++) fprintf(out, "%s\r\n", o->header[i]);
	if (has_length(o)) fprintf(out, "Content-Length: %zu\r\n", o->content_length);
	if (o->websocket) fputs("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", out);
	else fprintf(out, "%s%s", last ? "Connection: close\r\n" : "", o->open ? "" : "\r\n");
	if (fclose(out) != 0) return fail(error, size, "no memory");
	return r->length <= TARGET_REQUEST_MAX ? 0 : fail(error, size, "the request for %s is too long", p->path);
}

/* --- HTTP/2 and HTTP/3 --- */

/* Returns false without memory. */
static bool add_field(struct target *t, const char *name, size_t name_length, const char *value, size_t value_length) {
	struct target_field *f = &t->field[t->fields++];
	*f = (struct target_field){{strndup(name, name_length), name_length}, {strndup(value, value_length), value_length}};
	for (char *c = f->name.at; c && *c; c++)
		if (*c >= 'A' && *c <= 'Z') *c |= 0x20;
	return f->name.at && f->value.at;
}

/* Returns whether a field is one of the connection, which HTTP/2 does not have (RFC 9113, section 8.2.2). */
static bool is_of_connection(const char *name, size_t length) {
	static const char *const names[] = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == length && strncasecmp(names[i], name, length) == 0) return true;
	return false;
}

/* Adds a field from a line "Name: value". as: the name it gets instead, or NULL. */
static int add_line(struct target *t, const char *line, const char *as, char *error, size_t size) {
	const size_t name_length = strcspn(line, ":");
	const char *value = line + name_length + 1;
	value += strspn(value, " \t");
	size_t length = strlen(value);
	while (length && (value[length - 1] == ' ' || value[length - 1] == '\t')) length--;
	if (is_of_connection(line, name_length))
		return fail(error, size, "HTTP/2 and HTTP/3 have no field %.*s", (int)name_length, line);
	const bool added =
		as ? add_field(t, as, strlen(as), value, length) : add_field(t, line, name_length, value, length);
	return added ? 0 : fail(error, size, "no memory");
}

static int make_fields(struct target *t, const struct parts *p, const struct target_options *o, char *error,
					   size_t size) {
	static const char method[] = ":method", scheme[] = ":scheme", authority[] = ":authority", path[] = ":path";
	const char *host = host_field(o), *is = p->secure ? "https" : "http";
	char *whole, length[48];
	t->field = calloc(TARGET_FIELDS_MAX, sizeof *t->field);
	if (asprintf(&whole, "%s%.*s", *p->path == '/' ? "" : "/", (int)strcspn(p->path, "#"), p->path) == -1) whole = NULL;
	const bool made = t->field && whole && add_field(t, method, sizeof method - 1, o->method, strlen(o->method)) &&
					  add_field(t, scheme, sizeof scheme - 1, is, strlen(is)) &&
					  add_field(t, path, sizeof path - 1, whole, strlen(whole));
	free(whole);
	if (!made) return fail(error, size, "no memory");
	if (host && add_line(t, host, authority, error, size) == -1) return -1;
	if (!host && !add_field(t, authority, sizeof authority - 1, p->authority, p->authority_length))
		return fail(error, size, "no memory");
	for (unsigned i = 0; i < o->headers; i++)
		if (o->header[i] != host && add_line(t, o->header[i], NULL, error, size) == -1) return -1;
	if (!has_length(o)) return 0;
	snprintf(length, sizeof length, "content-length: %zu", o->content_length);
	return add_line(t, length, NULL, error, size);
}

int target_make(struct target *t, const char *url, const struct target_options *o, const struct target *before,
				char *error, size_t size) {
	struct parts p = {0};
	*t = (struct target){.url = url, .bodiless = strcmp(o->method, "HEAD") == 0};
	if (parse_url(&p, url, error, size) == -1) return -1;
	if (p.secure && !(t->host = strdup(p.host))) return fail(error, size, "no memory");
	if (o->unix_path) {
		if (use_unix(t, o->unix_path, error, size) == -1) return -1;
	} else if (!use_same(t, &p, before) && look_up(t, &p, error, size) == -1) {
		return -1;
	}
	if (o->fields && make_fields(t, &p, o, error, size) == -1) return -1;
	if (o->websocket) return make_request(&t->upgrade, &p, o, false, error, size);
	if (make_request(&t->request, &p, o, false, error, size) == -1) return -1;
	return make_request(&t->last, &p, o, true, error, size);
}

void target_free(struct target *t) {
	free(t->host);
	free(t->request.at);
	free(t->last.at);
	free(t->upgrade.at);
	for (unsigned i = 0; i < t->fields; i++) {
		free(t->field[i].name.at);
		free(t->field[i].value.at);
	}
	free(t->field);
	free(t->stream.at);
}
