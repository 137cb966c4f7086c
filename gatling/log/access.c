/* access.c - see access.h. The put_ functions append text at `at`, and return where it ends. */
#include "gatling/log/access.h"

#include "gatling/base/slice.h"
#include "gatling/base/utf8.h"
#include "gatling/http/chars.h"

struct access access_of(const struct peer *peer, const struct request *r) {
	if (!r) return (struct access){.peer = peer};
	struct slice host = r->host.at ? r->host : request_field(r, FIELD_HOST);
	return (struct access){.peer = peer,
						   .line = r->line,
						   .understood = r->path.at,
						   .host = host,
						   .referer = request_field(r, FIELD_REFERER),
						   .user_agent = request_field(r, FIELD_USER_AGENT)};
}

/* --- the Common Log Format, and the Combined one --- */

static char *put_escaped(char *at, struct slice text) {
	while (text.length) {
		at = text_copy(at, chars_take(&text, CHAR_QUOTABLE));
		if (!text.length) break;
		at = text_copy_hex(text_copy(at, SLICE("\\x")), (unsigned char)*text.at);
		slice_drop(&text, 1);
	}
	return at;
}

static struct slice cut(struct slice text, size_t most) { return text.length > most ? slice_first(text, most) : text; }

static char *put_quoted(char *at, struct slice field, size_t most) {
	*at++ = ' ';
	*at++ = '"';
	at = field.at ? put_escaped(at, cut(field, most)) : text_copy(at, SLICE("-"));
	*at++ = '"';
	return at;
}

/* Appends text without quotes, so that a space is escaped, too; or a hyphen. */
static char *put_word(char *at, struct slice text, size_t most) {
	if (!text.length) return text_copy(at, SLICE("-"));
	for (text = cut(text, most);; at = text_copy(at, SLICE("\\x20"))) {
		size_t n = slice_until(text, ' ');
		at = put_escaped(at, slice_first(text, n));
		if (n == text.length) return at;
		slice_drop(&text, n + 1);
	}
}

/* Appends the host without the port that the client has named, and that to which it has connected. */
static char *put_host(char *at, const struct access *a) {
	struct slice host = a->host;
	const size_t address = slice_starts(host, SLICE("[")) ? slice_until(host, ']') : 0;
	if (host.length) host.length = address + slice_until(slice_rest(host, address), ':');
	char *const end = put_word(at, host, ACCESS_FIELD_MAX);
	for (; at < end; at++) *at = text_lower(*at);
	*at++ = ':';
	at = text_copy_number(at, a->port);
	*at++ = ' ';
	return at;
}

static char *put_common_start(char *at, const struct access_style *l, const struct access *a) {
	at += peer_format(at, a->peer);
	at = put_word(text_copy(at, SLICE(" - ")), a->user, ACCESS_USER_MAX);
	return TEXT_JOIN(at, SLICE(" ["), l->date, SLICE("]"));
}

static char *put_common(char *at, const struct access *a) {
	at = put_quoted(at, a->line, ACCESS_REQUEST_MAX);
	*at++ = ' ';
	at = text_copy_number(at, (unsigned)a->status);
	*at++ = ' ';
	return a->bytes ? text_copy_number(at, a->bytes) : text_copy(at, SLICE("-"));
}

static char *put_combined(char *at, const struct access *a) {
	at = put_common(at, a);
	at = put_quoted(at, a->referer, ACCESS_FIELD_MAX);
	return put_quoted(at, a->user_agent, ACCESS_FIELD_MAX);
}

static char *put_seconds(char *at, int64_t ns) {
	enum { US_PER_S = 1000000 };
	const uint64_t us = (uint64_t)ns / 1000, seconds = us / US_PER_S;
	at = text_copy_number(at, seconds);
	char *const end = text_copy_number(at, US_PER_S + us % US_PER_S); /* six digits, after one for the point */
	*at = '.';
	return end;
}

/* --- JSON (RFC 8259) --- */

/* Returns whether c is a control character (C0, DEL or C1), which terminals obey. */
static bool is_control(uint32_t c) { return c < ' ' || (c >= 0x7f && c <= 0x9f); }

/* Appends a string. A byte that is not UTF-8 is escaped as the character with that number. */
static char *put_string(char *at, struct slice text, size_t most) {
	*at++ = '"';
	for (size_t i = 0, length; i < text.length && i < most; i += length) {
		uint32_t c;
		length = chars_span(cut(slice_rest(text, i), most - i), CHAR_QUOTABLE);
		at = text_copy(at, (struct slice){.at = text.at + i, .length = length});
		if (length) continue;
		length = utf8_character(slice_rest(text, i), &c);
		if (c == UTF8_INVALID || is_control(c)) {
			at = text_copy_hex(text_copy(at, SLICE("\\u00")), (unsigned char)text.at[i + length - 1]);
		} else {
			if (c == '"' || c == '\\') *at++ = '\\';
			at = text_copy(at, (struct slice){.at = text.at + i, .length = length});
		}
	}
	*at++ = '"';
	return at;
}

/* Appends a member of an object after others, or nothing if the value is absent. */
static char *put_member(char *at, struct slice name, struct slice value, size_t most) {
	if (!value.at) return at;
	return put_string(TEXT_JOIN(at, SLICE(",\""), name, SLICE("\":")), value, most);
}

/* Appends the request line: its three parts, which two spaces separate, if it was understood. */
static char *put_request(char *at, const struct access *a) {
	struct slice line = a->line;
	if (!a->understood && (!line.length || slice_equal(line, SLICE("-")))) return at;
	if (!a->understood) return put_member(at, SLICE("request"), line, ACCESS_REQUEST_MAX);
	size_t method = slice_until(line, ' ');
	struct slice rest = slice_rest(line, method + 1);
	size_t target = slice_until(rest, ' ');
	at = put_member(at, SLICE("method"), slice_first(line, method), METHOD_MAX);
	at = put_member(at, SLICE("target"), slice_first(rest, target), TARGET_MAX);
	return put_member(at, SLICE("protocol"), slice_rest(rest, target + 1), ACCESS_FIELD_MAX);
}

static char *put_json_start(char *at, const struct access_style *l, const struct access *a) {
	char text[PEER_MAX];
	struct slice address = {.at = text, .length = peer_format(text, a->peer)};
	at = TEXT_JOIN(at, SLICE("{\"time\":\""), l->date, SLICE("\""));
	return put_member(at, SLICE("address"), address, PEER_MAX);
}

static char *put_json(char *at, const struct access *a) {
	at = put_member(at, SLICE("user"), a->user, ACCESS_USER_MAX);
	at = put_request(at, a);
	at = put_member(at, SLICE("host"), a->host, ACCESS_FIELD_MAX);
	at = text_copy(at, SLICE(",\"status\":"));
	at = text_copy_number(at, (unsigned)a->status);
	at = text_copy(at, SLICE(",\"bytes\":"));
	at = text_copy_number(at, a->bytes);
	at = put_member(at, SLICE("referer"), a->referer, ACCESS_FIELD_MAX);
	at = put_member(at, SLICE("user_agent"), a->user_agent, ACCESS_FIELD_MAX);
	if (!a->upstream) return at;
	at = put_member(at, SLICE("upstream"), a->upstream->address, ACCESS_UPSTREAM_MAX);
	if (!a->upstream->status) return at;
	at = text_copy_number(text_copy(at, SLICE(",\"upstream_status\":")), (unsigned)a->upstream->status);
	return put_seconds(text_copy(at, SLICE(",\"upstream_seconds\":")), a->upstream->ns);
}

/* --- all formats --- */

size_t access_date(char *out, enum log_format format, time_t now) {
	struct tm tm;
	if (format == LOG_JSON) return strftime(out, ACCESS_DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	return strftime(out, ACCESS_DATE_MAX, "%d/%b/%Y:%T %z", localtime_r(&now, &tm));
}

void access_set_time(struct access_style *l, time_t now) {
	l->date = (struct slice){.at = l->date_text, .length = access_date(l->date_text, l->format, now)};
	l->start_length = 0;
}

/* Appends the start of a line, which is kept for the next one. In the common formats a user is between address and
 * date, so the start of a line with a user is not kept; in JSON it follows both. */
static char *put_start(char *at, struct access_style *l, const struct access *a) {
	if (l->format != LOG_JSON && a->user.length) return put_common_start(at, l, a);
	if (!l->start_length || memcmp(&l->peer, a->peer, sizeof l->peer) != 0) {
		const char *end = (l->format == LOG_JSON ? put_json_start : put_common_start)(l->start, l, a);
		l->start_length = (size_t)(end - l->start);
		l->peer = *a->peer;
	}
	return text_copy(at, (struct slice){.at = l->start, .length = l->start_length});
}

size_t access_format(char *out, struct access_style *l, const struct access *a) {
	char *at = put_start(l->format == LOG_VCOMBINED ? put_host(out, a) : out, l, a);
	at = l->format == LOG_JSON ? put_json(at, a) : l->format == LOG_COMMON ? put_common(at, a) : put_combined(at, a);
	return (size_t)(at - out);
}

size_t access_end(char *out, enum log_format format, int64_t ns) {
	if (format == LOG_COMBINED || format == LOG_VCOMBINED) return 0;
	char *at = out;
	if (format == LOG_JSON) at = text_copy(at, SLICE(",\"seconds\":"));
	else *at++ = ' ';
	at = put_seconds(at, ns);
	if (format == LOG_JSON) *at++ = '}';
	return (size_t)(at - out);
}
