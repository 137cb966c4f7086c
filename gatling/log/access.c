/* access.c - see access.h. */
#include "gatling/log/access.h"

#include "gatling/base/owfat.h"

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

static size_t put_octet(char *out, const char *escape, unsigned char c) {
	size_t n = fmt_str(out, escape);
	out[n++] = fmt_tohex((char)(c >> 4));
	out[n++] = fmt_tohex((char)(c & 15));
	return n;
}

/* The start of a text; least: the first of the printable characters that stay as they are. */
static size_t put_escaped(char *out, struct slice text, size_t most, char least) {
	size_t n = 0;
	for (size_t i = 0; i < text.length && i < most; i++) {
		unsigned char c = (unsigned char)text.at[i];
		if (c >= least && c < 127 && c != '"' && c != '\\') out[n++] = (char)c;
		else n += put_octet(out + n, "\\x", c);
	}
	return n;
}

static size_t put_quoted(char *out, struct slice field) {
	size_t n = fmt_str(out, " \"");
	n += put_escaped(out + n, field.at ? field : SLICE("-"), ACCESS_FIELD_MAX, ' ');
	out[n++] = '"';
	return n;
}

static size_t format_common(char *out, const char *date, const struct access *a) {
	size_t n = peer_format(out, a->peer);
	n += fmt_str(out + n, " - ");
	if (a->user.length) n += put_escaped(out + n, a->user, ACCESS_USER_MAX, '!');
	else out[n++] = '-';
	n += fmt_str(out + n, " [");
	n += fmt_str(out + n, date);
	n += fmt_str(out + n, "] \"");
	n += put_escaped(out + n, a->line.at ? a->line : SLICE("-"), ACCESS_REQUEST_MAX, ' ');
	n += fmt_str(out + n, "\" ");
	n += fmt_ulong(out + n, (unsigned long)a->status);
	out[n++] = ' ';
	if (!a->bytes) out[n++] = '-';
	else n += fmt_ulonglong(out + n, a->bytes);
	return n;
}

static size_t format_combined(char *out, const char *date, const struct access *a) {
	size_t n = format_common(out, date, a);
	n += put_quoted(out + n, a->referer);
	n += put_quoted(out + n, a->user_agent);
	return n;
}

/* --- JSON (RFC 8259) --- */

enum { C1_FIRST = 0x80, C1_LAST = 0x9f }; /* control characters that terminals obey, in UTF-8 behind an octet 0xc2 */

/* Octets of the character that a text begins with (RFC 3629); 0: it begins with none. */
static size_t utf8_length(const unsigned char *at, size_t length) {
	unsigned char least = 0x80, most = 0xbf; /* of the second octet: no overlong forms, surrogates, nor over 10FFFF */
	size_t n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
	if (at[0] == 0xe0) least = 0xa0;
	if (at[0] == 0xed) most = 0x9f;
	if (at[0] == 0xf0) least = 0x90;
	if (at[0] == 0xf4) most = 0x8f;
	if (n > length || (n > 1 && (at[1] < least || at[1] > most))) return 0;
	for (size_t i = 2; i < n; i++)
		if (at[i] < 0x80 || at[i] > 0xbf) return 0;
	return n;
}

/* The start of a text as a string. */
static size_t put_string(char *out, struct slice text, size_t most) {
	const unsigned char *at = (const unsigned char *)text.at;
	size_t n = 0, octets;
	out[n++] = '"';
	for (size_t i = 0; i < text.length && i < most; i += octets) {
		octets = utf8_length(at + i, text.length - i);
		bool control = octets == 1 && (at[i] < ' ' || at[i] == 127);
		if (octets == 1 && (at[i] == '"' || at[i] == '\\')) {
			out[n++] = '\\';
			out[n++] = text.at[i];
		} else if (octets == 0 || control) {
			n += put_octet(out + n, "\\u00", at[i]);
			octets = 1;
		} else if (octets == 2 && at[i] == 0xc2 && at[i + 1] >= C1_FIRST && at[i + 1] <= C1_LAST) {
			n += put_octet(out + n, "\\u00", at[i + 1]);
		} else {
			memcpy(out + n, at + i, octets);
			n += octets;
		}
	}
	out[n++] = '"';
	return n;
}

/* A member behind others; nothing if there is no value. name: with quotes. */
static size_t put_member(char *out, const char *name, struct slice value, size_t most) {
	if (!value.at) return 0;
	size_t n = 0;
	out[n++] = ',';
	n += fmt_str(out + n, name);
	out[n++] = ':';
	return n + put_string(out + n, value, most);
}

/* The parts of a request line that has been understood: so it has two spaces, and none in a part. */
static size_t put_parts(char *out, struct slice line) {
	const char *end = line.at + line.length;
	const char *first = memchr(line.at, ' ', line.length);
	const char *last = memchr(first + 1, ' ', (size_t)(end - first - 1));
	struct slice method = {.at = line.at, .length = (size_t)(first - line.at)};
	struct slice target = {.at = first + 1, .length = (size_t)(last - first - 1)};
	struct slice protocol = {.at = last + 1, .length = (size_t)(end - last - 1)};
	size_t n = put_member(out, "\"method\"", method, METHOD_MAX);
	n += put_member(out + n, "\"target\"", target, TARGET_MAX);
	return n + put_member(out + n, "\"protocol\"", protocol, ACCESS_FIELD_MAX);
}

static size_t put_request(char *out, const struct access *a) {
	if (a->understood) return put_parts(out, a->line);
	if (!a->line.length || slice_equal(a->line, SLICE("-"))) return 0;
	return put_member(out, "\"request\"", a->line, ACCESS_REQUEST_MAX);
}

static size_t format_json(char *out, const char *date, const struct access *a) {
	char address[PEER_MAX];
	size_t address_length = peer_format(address, a->peer);
	size_t n = fmt_str(out, "{\"time\":\"");
	n += fmt_str(out + n, date);
	out[n++] = '"';
	n += put_member(out + n, "\"address\"", (struct slice){.at = address, .length = address_length}, PEER_MAX);
	n += put_member(out + n, "\"user\"", a->user, ACCESS_USER_MAX);
	n += put_request(out + n, a);
	n += put_member(out + n, "\"host\"", a->host, ACCESS_FIELD_MAX);
	n += fmt_str(out + n, ",\"status\":");
	n += fmt_ulong(out + n, (unsigned long)a->status);
	n += fmt_str(out + n, ",\"bytes\":");
	n += fmt_ulonglong(out + n, a->bytes);
	n += put_member(out + n, "\"referer\"", a->referer, ACCESS_FIELD_MAX);
	return n + put_member(out + n, "\"user_agent\"", a->user_agent, ACCESS_FIELD_MAX);
}

/* --- all of them --- */

void access_date(char *out, enum log_format format, time_t now) {
	struct tm tm;
	if (format == LOG_JSON) strftime(out, ACCESS_DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm)); /* RFC 3339 */
	else strftime(out, ACCESS_DATE_MAX, "%d/%b/%Y:%T %z", localtime_r(&now, &tm));
}

size_t access_format(char *out, enum log_format format, const char *date, const struct access *a) {
	if (format == LOG_JSON) return format_json(out, date, a);
	return format == LOG_COMBINED ? format_combined(out, date, a) : format_common(out, date, a);
}

size_t access_end(char *out, enum log_format format, int64_t ns) {
	if (format == LOG_COMBINED) return 0;
	size_t n = fmt_str(out, format == LOG_JSON ? ",\"seconds\":" : " ");
	n += fmt_ulonglong(out + n, (unsigned long long)ns / 1000000000);
	out[n++] = '.';
	for (int64_t unit = 100000; unit; unit /= 10) out[n++] = (char)('0' + ns / 1000 / unit % 10);
	if (format == LOG_JSON) out[n++] = '}';
	return n;
}
