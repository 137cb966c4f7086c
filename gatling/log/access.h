/* access.h - writes a request as a line of the access log. No request can forge a line, or a field of one. */
#ifndef GATLING_LOG_ACCESS_H
#define GATLING_LOG_ACCESS_H

#include <stdint.h>
#include <time.h>

#include "gatling/base/peer.h"
#include "gatling/http/request.h"

/* The bytes of each that are logged, from its start; in a line every byte may take six. */
enum {
	ACCESS_REQUEST_MAX = 9 * 1024, /* of a request line */
	ACCESS_FIELD_MAX = 1024,       /* of each of the fields Host, Referer, User-Agent */
	ACCESS_USER_MAX = 256,         /* of the name of a user */
	ACCESS_UPSTREAM_MAX = 128,     /* of the address of an upstream */
	ACCESS_LINE_MAX = 6 * (ACCESS_REQUEST_MAX + 3 * ACCESS_FIELD_MAX + ACCESS_USER_MAX + ACCESS_UPSTREAM_MAX) + 640,
	ACCESS_END_MAX = 40, /* see access_end() */
	ACCESS_DATE_MAX = 64,
	ACCESS_START_MAX = PEER_MAX + ACCESS_DATE_MAX + 32
};

enum log_format { LOG_COMMON, LOG_COMBINED, LOG_JSON, LOG_OFF };

/* Where a request was passed on to. */
struct access_upstream {
	struct slice address;
	int status; /* of its response; 0: there was none */
	int64_t ns; /* until the head of that came */
};

/* A request and its response. Slices are absent if they are not known. */
struct access {
	const struct peer *peer;
	struct slice line; /* the request line */
	bool understood;   /* the request line has its three parts */
	struct slice host, referer, user_agent;
	struct slice user; /* the authenticated user */
	int status;
	/* of the whole content, also if less was sent; of what was passed on, as far as it had come */
	uint64_t bytes;
	const struct access_upstream *upstream; /* NULL: none */
};

/* What the lines of a worker have in common. With the format, and else zero, it is ready for access_set_time(). */
struct access_style {
	enum log_format format;
	struct slice date; /* see access_date() */
	/* What the last line began with, which the next one often does, too: the address, and the date. */
	struct peer peer;
	size_t start_length; /* 0: there is none */
	char date_text[ACCESS_DATE_MAX], start[ACCESS_START_MAX];
};

/* Sets the time of the lines that follow. */
void access_set_time(struct access_style *style, time_t now);

/* Returns the entry of a request, as far as it was understood; NULL: nothing was. user, status and bytes stay empty. */
struct access access_of(const struct peer *peer, const struct request *request);

/* Writes the time in the form of that format (JSON: RFC 3339), with a NUL, to out (ACCESS_DATE_MAX bytes). Returns the
 * bytes before that. */
size_t access_date(char *out, enum log_format format, time_t now);

/* Writes a line without its end (access_end()) to out (ACCESS_LINE_MAX bytes). Returns the bytes written, which have no
 * line break. Absent values are "-", or missing in an object.
 *   LOG_COMMON    host - user [date] "request line" status bytes
 *   LOG_COMBINED  the same, followed by "Referer" "User-Agent"
 *   LOG_JSON {"time":...,"address":...,"user":...,"method":...,"target":...,"protocol":...,"host":...,"status":...,
 *                 "bytes":...,"referer":...,"user_agent":...,"upstream":...,"upstream_status":...,
 *                 "upstream_seconds":...; if the request line was not
 *                 understood, "request" with the whole line in place of the three about it
 * The first two write quotes, backslashes and all but printable ASCII as \xHH. An object is always UTF-8: a byte that
 * is not part of UTF-8 is \u00HH, like control characters. */
size_t access_format(char *out, struct access_style *style, const struct access *access);

/* Writes the end of a line, with the time that the answer took, to out (ACCESS_END_MAX bytes). Returns the bytes
 * written. */
size_t access_end(char *out, enum log_format format, int64_t ns);

#endif
