/* request.c - see request.h. The parser handles one line at a time. It is strict, and refuses what RFC 9112 lets a
 * server repair, since parsers that repair differently make request smuggling possible. */
#include "gatling/http/request.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/host.h"

static enum method method_of(struct slice name) {
	struct slice one, not_allowed = SLICE("POST, PUT, DELETE, PATCH, TRACE, CONNECT");
	if (slice_equal(name, SLICE("GET"))) return METHOD_GET;
	if (slice_equal(name, SLICE("HEAD"))) return METHOD_HEAD;
	if (slice_equal(name, SLICE("OPTIONS"))) return METHOD_OPTIONS;
	while (slice_next_element(&not_allowed, &one))
		if (slice_equal(name, one)) return METHOD_NOT_ALLOWED;
	return METHOD_UNKNOWN;
}

/* Parses HTTP-version (RFC 9112, section 2.3). Returns 0, or the negative status to answer. */
static int parse_version(struct request *r, struct slice version) {
	const char *v = version.at;
	if (slice_equal(version, SLICE("HTTP/1.1"))) { /* nearly all */
		r->minor = 1;
		return 0;
	}
	if (version.length != strlen("HTTP/1.1") || !slice_starts(version, SLICE("HTTP/"))) return -400;
	if (!text_is_digit(v[5]) || v[6] != '.' || !text_is_digit(v[7])) return -400;
	if (v[5] != '1') return -505;
	r->minor = v[7] == '0' ? 0 : 1;
	return 0;
}

/* Parses a target in one of the four forms of RFC 9112, section 3.2. Returns 0, or the negative status to answer. */
static int parse_target(struct request *r, struct slice method, struct slice target) {
	if (target.at[0] != '/') {
		size_t scheme = host_scheme_length(target);
		if (slice_equal(method, SLICE("CONNECT"))) {
			r->path = target;
			return host_valid(target) ? 0 : -400;
		}
		if (slice_equal(target, SLICE("*"))) {
			r->path = target;
			return r->method == METHOD_OPTIONS ? 0 : -400;
		}
		if (!scheme || scheme == target.length) return -400;
		slice_drop(&target, scheme);
		size_t n = 0;
		while (n < target.length && target.at[n] != '/' && target.at[n] != '?') n++;
		r->host = slice_first(target, n);
		if (!n || !host_valid(r->host)) return -400;
		slice_drop(&target, n);
	}
	size_t path_length = slice_until(target, '?');
	r->path = path_length ? (struct slice){.at = target.at, .length = path_length} : SLICE("/");
	if (path_length < target.length) r->query = slice_rest(target, path_length);
	return 0;
}

int request_begin(struct request *r, struct slice method, struct slice target) {
	memset(r, 0, offsetof(struct request, field));
	r->minor = 1;
	r->keep_alive = true;
	r->method = method_of(method);
	r->method_name = method;
	if (target.length > TARGET_MAX) return -414;
	if (!method.length || chars_span(method, CHAR_TOKEN) != method.length) return -400;
	if (method.length > METHOD_MAX) return -501;
	if (!target.length || chars_span(target, CHAR_TARGET) != target.length) return -400;
	return parse_target(r, method, target);
}

/* Takes an octet off the front of *text. Returns false, and takes nothing, if the text does not begin with it. */
static inline bool take_octet(struct slice *text, char octet) {
	if (!text->length || *text->at != octet) return false;
	text->at++;
	text->length--;
	return true;
}

static int parse_request_line(struct request *r, struct slice line) {
	r->line = line;
	const struct slice method = chars_take(&line, CHAR_TOKEN);
	if (!method.length || !take_octet(&line, ' ')) return -400;
	if (method.length > METHOD_MAX) return -501;
	r->method_name = method;
	r->method = method_of(method); /* also if the request is refused: the answer to a HEAD has no body */
	const struct slice target = chars_take(&line, CHAR_TARGET);
	if (target.length > TARGET_MAX) return -414;
	if (!target.length || !take_octet(&line, ' ')) return -400;
	int error = parse_version(r, line);
	return error ? error : parse_target(r, method, target);
}

/* The slot of a name in the table. Known names have different slots: the compiler would report a second initializer. */
enum { NAMES = 64 };
#define NAME_PLACE(length, last) ((17 * (length) + (unsigned char)(last)) % NAMES)
#define NAME(known, last, field)                                                                                       \
	[NAME_PLACE(sizeof(known) - 1, last)] = {.text = (known), .length = sizeof(known) - 1, .name = (field)}
static const struct field_known {
	char text[24];
	unsigned length;
	enum field_name name;
} field_known[NAMES] = {
	NAME("host", 't', FIELD_HOST),
	NAME("range", 'e', FIELD_RANGE),
	NAME("expect", 't', FIELD_EXPECT),
	NAME("referer", 'r', FIELD_REFERER),
	NAME("if-match", 'h', FIELD_IF_MATCH),
	NAME("if-range", 'e', FIELD_IF_RANGE),
	NAME("forwarded", 'd', FIELD_FORWARDED),
	NAME("connection", 'n', FIELD_CONNECTION),
	NAME("user-agent", 't', FIELD_USER_AGENT),
	NAME("authorization", 'n', FIELD_AUTHORIZATION),
	NAME("if-none-match", 'h', FIELD_IF_NONE_MATCH),
	NAME("content-length", 'h', FIELD_CONTENT_LENGTH),
	NAME("accept-encoding", 'g', FIELD_ACCEPT_ENCODING),
	NAME("x-forwarded-for", 'r', FIELD_X_FORWARDED_FOR),
	NAME("want-repr-digest", 't', FIELD_WANT_REPR_DIGEST),
	NAME("if-modified-since", 'e', FIELD_IF_MODIFIED_SINCE),
	NAME("x-forwarded-proto", 'o', FIELD_X_FORWARDED_PROTO),
	NAME("transfer-encoding", 'g', FIELD_TRANSFER_ENCODING),
	NAME("available-dictionary", 'y', FIELD_AVAILABLE_DICTIONARY),
	NAME("if-unmodified-since", 'e', FIELD_IF_UNMODIFIED_SINCE),
};
static_assert(FIELD_OTHER <= CHAR_BIT * sizeof(unsigned), "request_has() keeps a bit for each");

/* Returns eight characters of a token in lower case. Among the characters that the added bit changes, only capitals
 * become letters, and none becomes a hyphen. */
static uint64_t lower_8(const char *at) {
	uint64_t octets;
	memcpy(&octets, at, sizeof octets);
	return octets | UINT64_C(0x2020202020202020);
}

static uint32_t lower_4(const char *at) {
	uint32_t octets;
	memcpy(&octets, at, sizeof octets);
	return octets | UINT32_C(0x20202020);
}

/* Returns whether two tokens of length (at least 4) are equal, ignoring case. known has only letters and hyphens. */
static bool same_name(const char *name, const char *known, size_t length) {
	if (length < 8) return lower_4(name) == lower_4(known) && lower_4(name + length - 4) == lower_4(known + length - 4);
	for (size_t i = 0; i + 8 < length; i += 8)
		if (lower_8(name + i) != lower_8(known + i)) return false;
	return lower_8(name + length - 8) == lower_8(known + length - 8);
}

inline enum field_name request_field_name(struct slice name) {
	if (!name.length) return FIELD_OTHER;
	const struct field_known *known = &field_known[NAME_PLACE(name.length, name.at[name.length - 1] | ' ')];
	if (name.length != known->length || !same_name(name.at, known->text, name.length)) return FIELD_OTHER;
	return known->name;
}

inline int request_add(struct request *r, enum field_name name, struct slice value) {
	if (name == FIELD_OTHER) return 0;
	if (r->fields == FIELDS_MAX) return -431;
	unsigned bit = 1U << name;
	r->repeated |= r->known & bit;
	r->known |= bit;
	r->field[r->fields++] = (struct field){.name = name, .value = slice_trim(value)};
	return 0;
}

inline bool request_has(const struct request *r, enum field_name name) { return r->known >> name & 1; }
inline bool request_repeats(const struct request *r, enum field_name name) { return r->repeated >> name & 1; }

struct slice request_field(const struct request *r, enum field_name name) {
	unsigned i = 0;
	if (!request_has(r, name)) return (struct slice){0};
	while (r->field[i].name != name) i++;
	return r->field[i].value;
}

/* Checks the Host field, and uses it unless the target has an authority (RFC 9112, section 3.2). Returns 0, or -400. */
static int check_host(struct request *r) {
	struct slice host = request_field(r, FIELD_HOST);
	if (request_repeats(r, FIELD_HOST) || (!host.at && r->minor >= 1)) return -400;
	if (host.length && !host_valid(host)) return -400;
	if (!r->host.at && host.length) r->host = host;
	return 0;
}

int content_length_parse(struct slice value, uint64_t *length) {
	*length = 0;
	for (size_t i = 0; i < value.length; i++) {
		const unsigned digit = (unsigned)value.at[i] - '0';
		if (digit > 9) return -400;
		*length = *length * 10 + digit;
		if (*length > BODY_LENGTH_MAX) return -413; /* so that it cannot overflow */
	}
	return value.length ? 0 : -400;
}

static int parse_content_length(struct request *r) {
	struct slice value = request_field(r, FIELD_CONTENT_LENGTH);
	if (request_repeats(r, FIELD_CONTENT_LENGTH)) return -400;
	const int error = content_length_parse(value, &r->content_length);
	if (!error) r->framing = r->content_length ? BODY_LENGTH : BODY_NONE;
	return error;
}

/* Parses Transfer-Encoding (RFC 9112, sections 6.1 and 7). The only known coding is "chunked", which must be the last.
 * Empty elements, which a recipient may skip (RFC 9110, section 5.6.1.2), are refused, as by other servers: all servers
 * on the way must agree on the framing. */
static int parse_transfer_encoding(struct request *r) {
	if (r->minor == 0) return -400;
	unsigned codings = 0;
	bool chunked = false;
	for (unsigned i = 0; i < r->fields; i++) {
		if (r->field[i].name != FIELD_TRANSFER_ENCODING) continue;
		struct slice rest = r->field[i].value;
		for (bool more = true; more; codings++) {
			size_t length = slice_until(rest, ',');
			struct slice coding = slice_trim(slice_first(rest, length));
			if (chunked || !coding.length) return -400;
			chunked = slice_equal_nocase(coding, SLICE("chunked"));
			more = length < rest.length;
			slice_drop(&rest, length + more);
		}
	}
	if (!chunked || codings > 1) return -501;
	r->framing = BODY_CHUNKED;
	return 0;
}

/* Determines the framing of the body (RFC 9112, section 6.3). Returns 0, or the negative status to answer. */
static int parse_framing(struct request *r) {
	bool length = request_has(r, FIELD_CONTENT_LENGTH);
	if (request_has(r, FIELD_TRANSFER_ENCODING)) return length ? -400 : parse_transfer_encoding(r);
	if (length) return parse_content_length(r);
	if (r->minor >= 1 || r->method != METHOD_NOT_ALLOWED) return 0;
	/* a body of an HTTP/1.0 request needs a Content-Length (RFC 1945, section 8.3) */
	return slice_equal(r->method_name, SLICE("POST")) || slice_equal(r->method_name, SLICE("PUT")) ? -411 : 0;
}

/* Parses Expect (RFC 9110, section 10.1.1). Returns 0, or -417. */
static int parse_expect(struct request *r) {
	if (r->minor == 0 || !request_has(r, FIELD_EXPECT)) return 0;
	for (unsigned i = 0; i < r->fields; i++) {
		if (r->field[i].name != FIELD_EXPECT) continue;
		struct slice list = r->field[i].value;
		for (struct slice expectation; slice_next_element(&list, &expectation);) {
			if (!slice_equal_nocase(expectation, SLICE("100-continue"))) return -417;
			r->expect_continue = true;
		}
	}
	return 0;
}

/* Sets keep_alive (RFC 9112, section 9.3). Returns 0, or -431: no more options are of use than there may be fields, and
 * each field that is passed on is compared with all of them. */
static int parse_connection(struct request *r) {
	bool close = false, keep_alive = false;
	unsigned options = 0;
	for (unsigned i = 0; i < r->fields && request_has(r, FIELD_CONNECTION); i++) {
		if (r->field[i].name != FIELD_CONNECTION) continue;
		struct slice list = r->field[i].value;
		for (struct slice option; slice_next_element(&list, &option);) {
			if (++options > FIELDS_MAX) return -431;
			close |= slice_equal_nocase(option, SLICE("close"));
			keep_alive |= slice_equal_nocase(option, SLICE("keep-alive"));
		}
	}
	r->keep_alive = !close && (r->minor >= 1 || keep_alive);
	return 0;
}

int request_end(struct request *r) {
	int error = parse_framing(r);
	return error ? error : parse_expect(r);
}

/* Returns whether a line may be incomplete. end: the bytes after its text; nothing has come of its CRLF, or only the
 * CR. */
static bool is_cut(struct slice end) { return !end.length || (end.length == 1 && *end.at == '\r'); }

/* Returns whether a text begins with a CRLF. */
static inline bool ends_line(struct slice text) { return text.length >= 2 && memcmp(text.at, "\r\n", 2) == 0; }

/* Removes text and the CRLF after it from the front of *rest. Returns 1; otherwise leaves *rest as it is, and returns 0
 * if the line is not complete, or -400 if it has another control character, such as a bare LF. */
static inline int next_text(struct slice *rest, struct slice *text) {
	struct slice end = *rest;
	*text = chars_take(&end, CHAR_TEXT);
	if (!ends_line(end)) return is_cut(end) ? 0 : -400;
	*rest = (struct slice){.at = end.at + 2, .length = end.length - 2};
	return 1;
}

/* Checks the start of a request line. Returns 0, or the negative status if it is already wrong. */
static int parse_incomplete(struct request *r, struct slice line) {
	size_t name = chars_span(line, CHAR_TOKEN);
	r->line = line;
	if (name < line.length && (name == 0 || line.at[name] != ' ')) return -400;
	if (name > METHOD_MAX) return -501;
	return line.length > METHOD_MAX + TARGET_MAX ? -414 : 0;
}

/* Removes the request line, and empty lines before it, from the front of *rest. Returns 1, 0 if it is not complete, or
 * the negative status to answer. */
static int next_request_line(struct request *r, struct slice *rest) {
	unsigned empty_lines = 0;
	struct slice line;
	int got;
	while ((got = next_text(rest, &line)) == 1 && !line.length)
		if (++empty_lines > EMPTY_LINES_MAX) return -400;
	if (got == 0) return parse_incomplete(r, line);
	if (got < 0) line = slice_first(*rest, slice_until(*rest, '\n'));
	int error = parse_request_line(r, line); /* a malformed one, too, for the log */
	return got < 0 ? got : error ? error : 1;
}

/* Removes the field lines (RFC 9112, section 5) from the front of *rest, up to the empty line. A line that starts with
 * a blank (obs-fold) has no name, and is refused. Returns what next_request_line() returns. */
static inline int next_fields(struct request *r, struct slice *rest) {
	for (unsigned fields = 1;; fields++) {
		const struct slice name = {.at = rest->at, .length = chars_span(*rest, CHAR_TOKEN)};
		if (!name.length) break;
		if (name.length == rest->length) return 0;
		if (name.at[name.length] != ':') return -400;
		*rest = (struct slice){.at = name.at + name.length + 1, .length = rest->length - name.length - 1};
		struct slice value;
		const int got = next_text(rest, &value);
		if (got != 1) return got;
		if (request_add(r, request_field_name(name), value) || fields > FIELDS_MAX) return -431;
	}
	if (ends_line(*rest)) return 1;
	return is_cut(*rest) ? 0 : -400;
}

int request_parse(struct request *r, const char *buffer, size_t length) {
	struct slice rest = {.at = buffer, .length = length};
	memset(r, 0, offsetof(struct request, field));
	int got = next_request_line(r, &rest);
	r->lines = rest;
	if (got == 1) got = next_fields(r, &rest);
	if (got == 0 && length >= HEAD_MAX) return -431;
	if (got < 1) return got;
	r->lines.length -= rest.length;
	size_t used = length - rest.length + 2;
	int error = used > HEAD_MAX ? -431 : check_host(r);
	if (error || (error = request_end(r)) || (error = parse_connection(r))) return error;
	r->expect_continue &= r->framing != BODY_NONE;
	return (int)used;
}

bool request_next_value(struct slice *lines, struct slice name, struct slice *value) {
	while (lines->length) {
		const size_t end = slice_until(*lines, '\n');
		struct slice line = slice_first(*lines, end);
		slice_drop(lines, end < lines->length ? end + 1 : end);
		if (line.length <= name.length || line.at[name.length] != ':' || !slice_starts_nocase(line, name)) continue;
		if (slice_ends(line, SLICE("\r"))) line.length--;
		*value = slice_trim(slice_rest(line, name.length + 1));
		return true;
	}
	return false;
}

bool request_of_this_origin(const struct request *r) {
	struct slice lines = r->lines;
	for (struct slice value; request_next_value(&lines, SLICE("sec-fetch-site"), &value);)
		if (!slice_equal(value, SLICE("same-origin")) && !slice_equal(value, SLICE("none"))) return false;
	return true;
}

bool request_of_chromium(const struct request *r) {
	static const struct slice brand = SLICE("\"Chromium\";");
	struct slice lines = r->lines, brands;
	if (!request_next_value(&lines, SLICE("sec-ch-ua"), &brands)) return false;
	for (struct slice one; slice_next_element(&brands, &one);)
		if (slice_starts(one, brand)) return true;
	return false;
}

bool request_navigates(const struct request *r) {
	struct slice lines = r->lines, value;
	return request_next_value(&lines, SLICE("sec-fetch-dest"), &value) && slice_equal(value, SLICE("document"));
}

bool request_plausible(const char *buffer, size_t length) {
	const struct slice all = {.at = buffer, .length = length};
	return is_cut(slice_rest(all, chars_span(all, CHAR_TEXT)));
}

/* Copies s to *at, and moves *at behind the copy. Returns the copy; an absent slice stays absent. */
static struct slice copy(char **at, struct slice s) {
	if (!s.at) return s;
	struct slice copied = {.at = memcpy(*at, s.at, s.length), .length = s.length};
	*at += s.length;
	return copied;
}

struct request *request_keep(const struct request *r, size_t *size) {
	size_t head = offsetof(struct request, field) + r->fields * sizeof *r->field;
	*size = head + r->method_name.length + r->line.length + r->lines.length + r->path.length + r->query.length +
			r->host.length;
	for (unsigned i = 0; i < r->fields; i++) *size += r->field[i].value.length;
	/* the copy ends after the last field in use */
	struct request *copied = malloc(*size);
	if (!copied) return NULL;
	memcpy(copied, r, head);
	char *at = (char *)copied + head;
	copied->method_name = copy(&at, r->method_name);
	copied->line = copy(&at, r->line);
	copied->lines = copy(&at, r->lines);
	copied->path = copy(&at, r->path);
	copied->query = copy(&at, r->query);
	copied->host = copy(&at, r->host);
	copied->failed = (struct slice){0};
	for (unsigned i = 0; i < r->fields; i++) copied->field[i].value = copy(&at, r->field[i].value);
	return copied;
}

struct request *request_keep_logged(const struct request *r, size_t *size) {
	struct request logged;
	memcpy(&logged, r, offsetof(struct request, field));
	logged.method_name = logged.lines = logged.query = (struct slice){0};
	logged.path.length = 0; /* but not absent: an absent path means that the request line was malformed */
	logged.known &= 1U << FIELD_REFERER | 1U << FIELD_USER_AGENT;
	logged.fields = 0;
	for (unsigned i = 0; i < r->fields; i++)
		if (logged.known >> r->field[i].name & 1) logged.field[logged.fields++] = r->field[i];
	return request_keep(&logged, size);
}
