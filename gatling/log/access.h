/* access.h - a request as a line of the log, in one of its formats. Nobody can forge a line or a field of one. */
#ifndef GATLING_LOG_ACCESS_H
#define GATLING_LOG_ACCESS_H

#include <stdint.h>
#include <time.h>

#include "gatling/base/peer.h"
#include "gatling/http/request.h"

/* Bytes that are logged, of each the first ones; in a line every one of them may take six. */
enum {
	ACCESS_REQUEST_MAX = 9 * 1024, /* of a request line */
	ACCESS_FIELD_MAX = 1024,       /* of each of the fields Host, Referer, User-Agent */
	ACCESS_USER_MAX = 256,         /* of the name of a user */
	ACCESS_LINE_MAX = 6 * (ACCESS_REQUEST_MAX + 3 * ACCESS_FIELD_MAX + ACCESS_USER_MAX) + 512,
	ACCESS_END_MAX = 64, /* see access_end() */
	ACCESS_DATE_MAX = 64
};

enum log_format { LOG_COMMON, LOG_COMBINED, LOG_JSON, LOG_OFF };

/* A request and what answered it; what is not known is absent. */
struct access {
	const struct peer *peer;
	struct slice line; /* the request line */
	bool understood;   /* as one: it has its three parts */
	struct slice host, referer, user_agent;
	struct slice user; /* who has said so with a password */
	int status;
	uint64_t bytes; /* of content */
};

/* Of a request, with what was understood of it; NULL: there is none. Without user, status and bytes. */
struct access access_of(const struct peer *peer, const struct request *request);

/* Writes the time as the lines of the format have it, with a NUL, to out (ACCESS_DATE_MAX bytes). */
void access_date(char *out, enum log_format format, time_t now);

/* Writes a line but for its end to out (ACCESS_LINE_MAX bytes); the bytes written, among them no line break. What is
 * not there is "-", or left out of an object.
 *   LOG_COMMON    host - user [date] "request line" status bytes
 *   LOG_COMBINED  the same with "Referer" "User-Agent" behind it
 *   LOG_JSON {"time":...,"address":...,"user":...,"method":...,"target":...,"protocol":...,"host":...,"status":...,
 *                 "bytes":...,"referer":...,"user_agent":...; for the three about the request line "request" with the
 *                 whole of it, if it could not be understood
 * In the first two quotes, backslashes and all that is not printable ASCII are \xHH. An object is UTF-8 whatever came:
 * an octet that is not part of UTF-8 is \u00HH, like the controls. */
size_t access_format(char *out, enum log_format format, const char *date, const struct access *access);

/* Writes what a line ends with when the answer has taken so long, to out (ACCESS_END_MAX bytes); the bytes written. */
size_t access_end(char *out, enum log_format format, int64_t ns);

#endif
