/* request_fields.c - see request_fields.h. */
#include "gatling/streams/request_fields.h"

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/field_line.h"
#include "gatling/http/host.h"

enum { FIELD_OVERHEAD = 32 };

enum pseudo { METHOD, SCHEME, AUTHORITY, PATH, PROTOCOL };

static struct slice keep(struct request_fields *d, struct slice s) {
	char *at = d->text + d->used;
	if (s.length) memcpy(at, s.at, s.length);
	d->used += s.length;
	return (struct slice){.at = at, .length = s.length};
}

/* Notes an error (a negative status), if it is the first one. */
static void wrong(struct request_fields *d, int error) {
	if (error && !d->status) d->status = -error;
}

static void pseudo_field(struct request_fields *d, struct slice name, struct slice value) {
	static const struct slice names[REQUEST_PSEUDO_FIELDS] = {
		[METHOD] = SLICE(":method"), [SCHEME] = SLICE(":scheme"),     [AUTHORITY] = SLICE(":authority"),
		[PATH] = SLICE(":path"),     [PROTOCOL] = SLICE(":protocol"),
	};
	const size_t known = REQUEST_PSEUDO_FIELDS - !d->passes, place = slice_place(name, names, known);
	d->malformed |= place == known || d->begun || d->trailers || d->pseudo[place].at;
	if (place < known) d->pseudo[place] = keep(d, value);
}

/* Returns whether a scheme is valid (RFC 3986, section 3.1). */
static bool valid_scheme(struct slice scheme) {
	for (size_t i = 0; i < scheme.length; i++) {
		char c = scheme.at[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))) return false;
	}
	return scheme.length;
}

/* Checks the pseudo-fields, and begins the request (sections 8.3.1 and 8.5; RFC 8441, section 4). */
static void begin(struct request_fields *d) {
	struct slice *p = d->pseudo;
	bool changes = p[PROTOCOL].at, connect = p[METHOD].at && slice_equal(p[METHOD], SLICE("CONNECT"));
	d->malformed |= changes && (!connect || !p[AUTHORITY].at);
	connect &= !changes;
	if (d->begun || d->trailers) return;
	d->begun = true;
	if (!p[METHOD].length || connect != !p[SCHEME].length || connect != !p[PATH].at ||
		(!connect && (!valid_scheme(p[SCHEME]) || !p[PATH].length ||
					  (p[PATH].at[0] != '/' && !slice_equal(p[PATH], SLICE("*")))))) {
		d->malformed = true;
		return;
	}
	struct slice method = changes ? SLICE("GET") : p[METHOD];
	wrong(d, request_begin(d->request, method, connect ? p[AUTHORITY] : p[PATH]));
	d->request->websocket = changes;
	if (changes && !slice_equal_nocase(p[PROTOCOL], SLICE("websocket"))) wrong(d, -501);
}

/* Returns whether a field is specific to HTTP/1.1 connections, and so not allowed (section 8.2.2). */
static bool is_of_connections(struct slice name, struct slice value) {
	static const struct slice names[] = {SLICE("connection"), SLICE("proxy-connection"), SLICE("keep-alive"),
										 SLICE("transfer-encoding"), SLICE("upgrade")};
	if (slice_equal(name, SLICE("te"))) return !slice_equal_nocase(value, SLICE("trailers"));
	return slice_is_one_of(name, names, sizeof names / sizeof *names);
}

/* Returns whether a field name is valid (section 8.2.1). */
static bool valid_name(struct slice name) {
	for (size_t i = 0; i < name.length; i++)
		if (!char_is(name.at[i], CHAR_TOKEN) || (name.at[i] >= 'A' && name.at[i] <= 'Z')) return false;
	return name.length;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool valid_value(struct slice value) {
	if (chars_span(value, CHAR_TEXT) != value.length) return false;
	return !value.length || (!is_blank(value.at[0]) && !is_blank(value.at[value.length - 1]));
}

/* Adds a line to the fields that are passed on. There is room for it: the limit counts FIELD_OVERHEAD for each
 * field. */
static void add_line(struct request_fields *d, struct slice name, struct slice value) {
	if (slice_equal(name, SLICE("cookie"))) {
		char *start = d->cookie + d->cookie_length;
		char *end = text_copy(start, d->cookie_length ? SLICE("; ") : SLICE("cookie: "));
		d->cookie_length += (size_t)(text_copy(end, value) - start);
		return;
	}
	d->lines_length = (size_t)(field_line_put(d->lines + d->lines_length, name, value) - d->lines);
}

static void set_lines(struct request_fields *d) {
	char *end = text_copy(d->lines + d->lines_length, (struct slice){.at = d->cookie, .length = d->cookie_length});
	if (d->cookie_length) end = text_copy(end, SLICE("\r\n"));
	d->request->lines = (struct slice){.at = d->lines, .length = (size_t)(end - d->lines)};
}

/* Returns whether request_next_value() may ask for a field that is not known, and of Sec-Fetch-Dest, whether it has the
 * value that is asked for. */
static bool is_asked_for(struct slice name, struct slice value) {
	static const struct slice names[] = {SLICE("accept"), SLICE("accept-language"), SLICE("cookie"), SLICE("sec-ch-ua"),
										 SLICE("sec-fetch-site")};
	static const unsigned lengths = 1 << 6 | 1 << 9 | 1 << 14 | 1 << 15; /* of these: most fields have another */
	if (name.length > 15 || !(lengths >> name.length & 1)) return false;
	if (slice_equal(name, SLICE("sec-fetch-dest"))) return slice_equal(value, SLICE("document"));
	return slice_is_one_of(name, names, sizeof names / sizeof *names);
}

/* Handles a field that is not a pseudo-field. */
static void plain_field(struct request_fields *d, struct slice name, struct slice value) {
	begin(d);
	if (!valid_name(name) || is_of_connections(name, value)) d->malformed = true;
	if (d->malformed || d->status) return;
	if (d->passes || (!d->trailers && is_asked_for(name, value))) add_line(d, name, value);
	if (d->trailers) return;
	if (slice_equal(name, SLICE("priority"))) priority_parse(value, d->priority);
	enum field_name known = request_field_name(name);
	if (known != FIELD_OTHER) wrong(d, request_add(d->request, known, keep(d, value)));
}

static void field(struct request_fields *d, struct slice name, struct slice value) {
	if (d->status || d->malformed) return;
	if (!valid_value(value)) d->malformed = true;
	else if (name.length && name.at[0] == ':') pseudo_field(d, name, value);
	else plain_field(d, name, value);
}

/* Sets the host to :authority or Host, which must be equal if there are both (section 8.3.1). */
static void set_host(struct request_fields *d) {
	struct request *q = d->request;
	struct slice authority = d->pseudo[AUTHORITY], host = request_field(q, FIELD_HOST);
	if (q->repeated >> FIELD_HOST & 1 || (authority.at && host.at && !slice_equal_nocase(authority, host)))
		d->malformed = true;
	q->host = authority.at ? authority : host;
	if (!q->host.at || !host_valid(q->host)) wrong(d, -400);
}

/* Sets the request line for the log, as it would be in HTTP/1.1. */
static void set_line(struct request_fields *d) {
	char *start = d->text + d->used;
	(void)keep(d, d->pseudo[METHOD]);
	(void)keep(d, SLICE(" "));
	(void)keep(d, d->pseudo[PATH].at ? d->pseudo[PATH] : d->pseudo[AUTHORITY]);
	(void)keep(d, d->version);
	d->request->line = (struct slice){.at = start, .length = (size_t)(d->text + d->used - start)};
}

void request_fields_begin(struct request_fields *d, struct request *request, struct priority *priority, char *text) {
	char *lines = text + REQUEST_TEXT - 2 * REQUEST_LIST_MAX;
	d->request = request;
	d->priority = priority;
	d->text = text;
	d->lines = lines;
	d->cookie = lines + REQUEST_LIST_MAX;
}

bool request_fields_add(struct request_fields *d, struct slice name, struct slice value) {
	d->list += name.length + value.length + FIELD_OVERHEAD;
	if (++d->fields > FIELDS_MAX || d->list > REQUEST_LIST_MAX) return false;
	field(d, name, value);
	return true;
}

int request_fields_end(struct request_fields *d, bool complete) {
	struct request *q = d->request;
	if (complete && !d->status) begin(d);
	if (!complete || d->malformed || d->status == 414 || !d->begun) { /* the request may be incomplete or invalid */
		memset(q, 0, offsetof(struct request, field));
		q->line = SLICE("-");
	}
	if (!complete) return 0;
	if (d->malformed) return REQUEST_MALFORMED;
	set_lines(d);
	if (d->trailers) return 0;
	if (d->status == 414 || !d->begun) return d->status;
	set_host(d);
	set_line(d);
	wrong(d, request_end(q));
	d->malformed |= q->websocket && request_has(q, FIELD_CONTENT_LENGTH); /* RFC 9113, section 8.5 */
	return d->malformed ? REQUEST_MALFORMED : d->status;
}
