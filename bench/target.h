/* target.h - a URL with its server's address and the head of its request. */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum {
	TARGET_HEADERS_MAX = 64,
	TARGET_FIELDS_MAX = TARGET_HEADERS_MAX + 5, /* with those of RFC 9113, section 8.3.1, and Content-Length */
	TARGET_REQUEST_MAX = 64 * 1024
};

struct target_bytes {
	char *at;
	size_t length;
};

/* A field of HTTP/2: its name is in lower case. */
struct target_field {
	struct target_bytes name, value;
};

struct target {
	const char *url;
	char *host; /* for TLS, of a https:// URL; NULL: in the clear */
	struct sockaddr_storage address;
	socklen_t address_length;
	struct target_bytes request, last; /* heads for HTTP/1.1; last: with "Connection: close" */
	struct target_bytes upgrade;       /* for a WebSocket the others are empty; this one lacks its key and the end */
	struct target_field *field;        /* the head for HTTP/2, if that is asked for */
	unsigned fields;
	bool bodiless; /* a HEAD */
};

/* What all requests share. */
struct target_options {
	const char *method;
	const char *header[TARGET_HEADERS_MAX]; /* "Name: value" */
	unsigned headers;
	size_t content_length; /* of a request; 0: it has none */
	bool http2;            /* the fields are made, too */
	bool websocket;
	const char *unix_path; /* connect there whatever the URL's host is; NULL: connect to the host */
};

/* Parses the URL, looks its host up and makes its requests. Of several addresses of a host it takes the first that
 * accepts a connection. before: a target that may have the same host and port, then it has the same address; NULL:
 * none. 0; or -1 with a line about what is wrong in error. */
int target_make(struct target *target, const char *url, const struct target_options *options,
				const struct target *before, char *error, size_t error_size);

void target_free(struct target *target);

/* Returns the state of a non-blocking connect(2): 0 if the connection is established, as on loopback it is at once;
 * EINPROGRESS; or the error (D. J. Bernstein, "Non-blocking BSD socket connections"). */
int target_connected(int fd);

#endif
