/* access.h - writes a request as a line of the access log. No request can forge a line, or a field of one. */
#ifndef GATLING_LOG_ACCESS_H
#define GATLING_LOG_ACCESS_H

#include <stdint.h>
#include <time.h>

#include "gatling/base/peer.h"
#include "gatling/http/request.h"

/* How many bytes of each are logged, from its start. In a line every byte may take six. */
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

enum log_format { LOG_COMMON, LOG_COMBINED, LOG_VCOMBINED, LOG_JSON, LOG_OFF };

/* The upstream that a request was passed on to. */
struct access_upstream {
	struct slice address;
	int status; /* of its response; 0: there was none */
	int64_t ns; /* time until the head of its response came */
};

/* A request and its response. Slices are absent if they are unknown. */
struct access {
	const struct peer *peer;
	struct slice line; /* the request line */
	bool understood;   /* the request line has its three parts */
	struct slice host, referer, user_agent;
	unsigned port;     /* to which the client has connected; 0: a unix socket */
	struct slice user; /* who is authenticated, or with 401 and 429, who is not */
	int status;
	/* Length of the whole content, even if less was sent; of a response from an upstream, as much as had come. */
	uint64_t bytes;
	const struct access_upstream *upstream; /* NULL: none */
};

/* What the lines of a worker have in common. Set the format, and everything else to zero, before access_set_time(). */
struct access_style {
	enum log_format format;
	struct slice date; /* see access_date() */
	/* The start of the last line, with address and date, which is often that of the next one, too. */
	struct peer peer;
	size_t start_length; /* 0: there is none */
	char date_text[ACCESS_DATE_MAX], start[ACCESS_START_MAX];
};

/* Sets the time of the lines that follow. */
void access_set_time(struct access_style *style, time_t now);

/* Returns the entry of a request, or if that is NULL, of one that was not understood. The caller fills in user, status
 * and bytes. */
struct access access_of(const struct peer *peer, const struct request *request);

/* Writes the time as in this log format (JSON: RFC 3339), NUL-terminated, to out (ACCESS_DATE_MAX bytes). Returns its
 * length. */
size_t access_date(char *out, enum log_format format, time_t now);

/* Writes a line without its end (access_end()) to out (ACCESS_LINE_MAX bytes). Returns the bytes written, which have no
 * line break. Absent values are "-"; JSON leaves them out.
 *   LOG_COMMON    host - user [date] "request line" status bytes
 *   LOG_COMBINED  the same, followed by "Referer" "User-Agent"
 *   LOG_VCOMBINED host:port in front of that, as Apache's vhost_combined; the host in lower case
 *   LOG_JSON      {"time":...,"address":...,"user":...,"method":...,"target":...,"protocol":...,"host":...,
 *                 "status":...,"bytes":...,"referer":...,"user_agent":...,"upstream":...,"upstream_status":...,
 *                 "upstream_seconds":...
 * The first three write quotes, backslashes and all but printable ASCII as \xHH. JSON has "request" with the whole
 * line, in place of method, target and protocol, if the request line was not understood. It is always UTF-8: a byte
 * that is not part of UTF-8 is \u00HH, like control characters. */
size_t access_format(char *out, struct access_style *style, const struct access *access);

/* Writes the end of a line to out (ACCESS_END_MAX bytes): how long the response took, except for LOG_COMBINED and
 * LOG_VCOMBINED. Returns the bytes written. */
size_t access_end(char *out, enum log_format format, int64_t ns);

#endif
