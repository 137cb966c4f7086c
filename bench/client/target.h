/* target.h - a URL, its server's address, and the head of its request. */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum {
	TARGET_HEADERS_MAX = 64,
	TARGET_FIELDS_MAX = TARGET_HEADERS_MAX + 5, /* plus those of RFC 9113, section 8.3.1, and Content-Length */
	TARGET_REQUEST_MAX = 64 * 1024
};

struct target_bytes {
	char *at;
	size_t length;
};

/* A field of HTTP/2 or HTTP/3, whose name is in lower case. */
struct target_field {
	struct target_bytes name, value;
};

struct target {
	const char *url;
	char *host; /* for TLS, from a https:// URL; NULL: without TLS */
	struct sockaddr_storage address;
	socklen_t address_length;
	struct target_bytes request, last; /* heads for HTTP/1.1; last has "Connection: close" */
	struct target_bytes upgrade;       /* for WebSockets, the others are empty; without key and empty line */
	struct target_field *field;        /* the head for HTTP/2 and HTTP/3, if options request it */
	unsigned fields;
	struct target_bytes stream; /* for HTTP/3: what the stream of a request begins with; the caller sets it */
	bool bodiless;              /* the response to HEAD has no content */
};

/* What all requests have in common. */
struct target_options {
	const char *method;
	const char *header[TARGET_HEADERS_MAX]; /* "Name: value" */
	unsigned headers;
	size_t content_length; /* of each request; 0: no content, which POST, PUT and PATCH say */
	bool fields;           /* makes those for HTTP/2 and HTTP/3, too */
	bool websocket;
	bool open;             /* the heads for HTTP/1.1 end without the empty line: other fields follow */
	const char *unix_path; /* connect there, whatever host the URL has; NULL: connect to the host */
};

/* Parses the URL, looks up its host, and makes its requests. If the host has several addresses, uses the first one that
 * accepts a connection. before: a target whose address is used if its host and port are the same, or NULL. Returns 0,
 * or -1 with a message in error. */
int target_make(struct target *target, const char *url, const struct target_options *options,
				const struct target *before, char *error, size_t error_size);

void target_free(struct target *target);

#endif
