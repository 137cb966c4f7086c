/* upstream_head.c - see upstream_head.h. */
#include "gatling/upstream/upstream_head.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/field_line.h"

/* --- field lines --- */

/* What is done with a field besides those that Connection names. */
enum treatment {
	PASSED_ON,
	OF_CONNECTION, /* for a single connection only, like the next ones */
	OPTIONS,       /* Connection */
	CODINGS_TAKEN, /* TE */
	CODING,        /* Transfer-Encoding */
	LENGTH,        /* Content-Length: this server frames content itself */
	OF_REQUEST,    /* this server writes it itself, in requests, */
	OF_RESPONSE,   /* or in responses */
	OF_PROXIES     /* see treatment_of() */
};

struct line {
	struct slice name, value, whole; /* whole: with its CRLF */
	enum treatment treatment;
};

static const struct {
	unsigned char length;
	bool begins; /* the name may go on */
	char name[30];
	enum treatment treatment;
} treated[] = {
#define TREATED(name, treatment)                                                                                       \
	{ sizeof(name) - 1, false, name, treatment }
#define BEGINS(name)                                                                                                   \
	{ sizeof(name) - 1, true, name, OF_PROXIES }
	TREATED("te", CODINGS_TAKEN),
	TREATED("date", OF_RESPONSE),
	TREATED("host", OF_REQUEST),
	TREATED("proxy", OF_REQUEST),
	TREATED("expect", OF_REQUEST),
	TREATED("server", OF_RESPONSE),
	TREATED("x-host", OF_PROXIES),
	TREATED("upgrade", OF_CONNECTION),
	TREATED("x-scheme", OF_PROXIES),
	TREATED("client-ip", OF_PROXIES),
	TREATED("forwarded", OF_REQUEST),
	TREATED("x-real-ip", OF_REQUEST),
	TREATED("connection", OPTIONS),
	TREATED("keep-alive", OF_CONNECTION),
	TREATED("client-cert", OF_PROXIES),
	TREATED("remote-addr", OF_PROXIES),
	TREATED("remote-name", OF_PROXIES),
	TREATED("remote-user", OF_PROXIES),
	TREATED("x-client-ip", OF_PROXIES),
	TREATED("x-forwarded", OF_PROXIES),
	TREATED("x-remote-ip", OF_PROXIES),
	TREATED("remote-email", OF_PROXIES),
	TREATED("x-url-scheme", OF_PROXIES),
	TREATED("fly-client-ip", OF_PROXIES),
	TREATED("forwarded-for", OF_PROXIES),
	TREATED("remote-groups", OF_PROXIES),
	TREATED("x-client-cert", OF_PROXIES),
	TREATED("x-remote-addr", OF_PROXIES),
	TREATED("x-remote-user", OF_PROXIES),
	TREATED("x-rewrite-url", OF_PROXIES),
	TREATED("content-length", LENGTH),
	TREATED("http-client-ip", OF_PROXIES),
	TREATED("http2-settings", OF_REQUEST),
	TREATED("true-client-ip", OF_PROXIES),
	TREATED("x-proxyuser-ip", OF_PROXIES),
	TREATED("front-end-https", OF_PROXIES),
	TREATED("proxy-client-ip", OF_PROXIES),
	TREATED("x-forwarded-for", OF_REQUEST),
	TREATED("cf-connecting-ip", OF_PROXIES),
	TREATED("fastly-client-ip", OF_PROXIES),
	TREATED("proxy-connection", OF_CONNECTION),
	TREATED("x-azure-clientip", OF_PROXIES),
	TREATED("x-azure-socketip", OF_PROXIES),
	TREATED("x-forwarded-host", OF_REQUEST),
	TREATED("x-originating-ip", OF_PROXIES),
	TREATED("client-cert-chain", OF_PROXIES),
	TREATED("transfer-encoding", CODING),
	TREATED("x-forwarded-proto", OF_REQUEST),
	TREATED("cf-connecting-ipv6", OF_PROXIES),
	TREATED("wl-proxy-client-ip", OF_PROXIES),
	TREATED("x-cluster-client-ip", OF_PROXIES),
	TREATED("x-envoy-external-address", OF_PROXIES),
	BEGINS("x-ssl-"),
	BEGINS("x-original-"),
	BEGINS("ssl-client-"),
	BEGINS("x-forwarded-"),
	BEGINS("x-auth-request-"),
#undef TREATED
#undef BEGINS
};

/* Returns what is done with a field of that name. OF_PROXIES: it says who the client is, what it has connected to or
 * what it has asked for, in the place of the request itself: something that only proxies write, and that applications
 * believe. */
static enum treatment treatment_of(struct slice name) {
	for (size_t i = 0; i < sizeof treated / sizeof *treated; i++) {
		const unsigned length = treated[i].length;
		if ((name.length == length || (name.length > length && treated[i].begins)) &&
			strncasecmp(treated[i].name, name.at, length) == 0)
			return treated[i].treatment;
	}
	return PASSED_ON;
}

/* Returns the length of the line end at the start of `at`, 0 if it is not complete, or -1 if there is none. lf: LF
 * alone is a line end, too. */
static int line_end(struct slice at, bool lf) {
	if (!at.length || (at.length == 1 && at.at[0] == '\r')) return 0;
	if (at.at[0] == '\r' && at.at[1] == '\n') return 2;
	return lf && at.at[0] == '\n' ? 1 : -1;
}

/* Whose lines they are. */
enum lines {
	LINES_STRICT,   /* ours, or of a request, whose parser has checked them */
	LINES_RESPONSE, /* blanks before a colon are skipped (RFC 9112, section 5.1) */
	LINES_PROGRAM   /* the same, and LF alone is a line end, too */
};

/* Removes the next field line from the front of *rest. Returns 1, 0 if it is not complete, or -1 if it is
 * malformed. */
static int next_line(struct slice *rest, enum lines of, struct line *line) {
	const char *const bound = rest->at + rest->length;
	line->name = (struct slice){.at = rest->at, .length = chars_span(*rest, CHAR_TOKEN)};
	const char *at = rest->at + line->name.length;
	while (of != LINES_STRICT && line->name.length && at < bound && (*at == ' ' || *at == '\t')) at++;
	if (at == bound) return 0;
	if (!line->name.length || *at++ != ':') return -1;
	line->value = (struct slice){.at = at, .length = (size_t)(bound - at)};
	line->value.length = chars_span(line->value, CHAR_TEXT);
	at += line->value.length;
	const int end = line_end((struct slice){.at = at, .length = (size_t)(bound - at)}, of == LINES_PROGRAM);
	if (end <= 0) return end;
	at += end;
	line->value = slice_trim(line->value);
	line->whole = (struct slice){.at = rest->at, .length = (size_t)(at - rest->at)};
	line->treatment = treatment_of(line->name);
	*rest = (struct slice){.at = at, .length = (size_t)(bound - at)};
	return 1;
}

#define IS_ONE_OF(name, names) slice_is_one_of_nocase(name, names, sizeof(names) / sizeof *(names))

/* The options of Connection, which name fields for this connection only. */
struct connection_options {
	unsigned count;
	struct slice option[FIELDS_MAX];
};

/* Adds the options in a value. Returns false if there are too many. */
static bool add_options(struct connection_options *c, struct slice value) {
	for (struct slice option; slice_next_element(&value, &option); c->option[c->count++] = option)
		if (c->count == FIELDS_MAX) return false;
	return true;
}

static bool is_named(const struct connection_options *c, struct slice name) {
	return c->count && slice_is_one_of_nocase(name, c->option, c->count);
}

static bool is_of_connection(const struct connection_options *c, const struct line *line) {
	return (line->treatment >= OF_CONNECTION && line->treatment <= CODING) || is_named(c, line->name);
}

/* --- the request --- */

static void find_connection(const struct request *q, struct connection_options *c) {
	c->count = 0;
	for (unsigned i = 0; i < q->fields; i++) /* request_parse() allows no more options than there is room for */
		if (q->field[i].name == FIELD_CONNECTION) (void)add_options(c, q->field[i].value);
}

/* Returns whether Upgrade requests WebSocket and nothing else: after an upgrade to h2c, requests would evade all
 * rules. */
static bool asks_for_websocket(const struct request *q) {
	struct slice rest = q->lines;
	bool asks = false;
	for (struct line line; rest.length && next_line(&rest, LINES_STRICT, &line) == 1;) {
		if (!slice_equal_nocase(line.name, SLICE("upgrade"))) continue;
		if (!slice_equal_nocase(line.value, SLICE("websocket"))) return false;
		asks = true;
	}
	return asks;
}

bool upstream_upgrades(const struct request *q) {
	struct connection_options c;
	if (q->websocket) return true;
	if (q->minor == 0 || q->framing != BODY_NONE || !request_has(q, FIELD_CONNECTION)) return false;
	find_connection(q, &c);
	return is_named(&c, SLICE("upgrade")) && asks_for_websocket(q);
}

/* Returns whether a field of the client is passed on. */
static bool passes(const struct upstream_request *u, const struct connection_options *c, const struct line *line) {
	/* the upstream gets another key */
	if (u->request->websocket && slice_equal_nocase(line->name, SLICE("sec-websocket-key"))) return false;
	if (line->treatment == OF_PROXIES && u->arrival->forwarding != FORWARDING_X_FORWARDED_FOR) return false;
	return line->treatment != LENGTH && line->treatment != OF_REQUEST && !is_of_connection(c, line) &&
		   !memchr(line->name.at, '_', line->name.length);
}

unsigned upstream_fields(const struct upstream_request *u, struct upstream_field *fields) {
	const struct request *q = u->request;
	struct connection_options c;
	struct slice rest = q->lines;
	unsigned count = 0;
	find_connection(q, &c);
	for (struct line line; count < FIELDS_MAX && rest.length && next_line(&rest, LINES_STRICT, &line) == 1;)
		if (passes(u, &c, &line)) fields[count++] = (struct upstream_field){.name = line.name, .value = line.value};
	return count;
}

/* Returns the value of an X-Forwarded field of a trusted proxy that writes these fields, or an absent slice. A proxy
 * that writes Forwarded may pass on the others as sent by the client. */
static struct slice said_by_proxy(const struct upstream_request *u, struct slice name) {
	struct slice lines = u->request->lines, value = {0};
	if (u->arrival->forwarding == FORWARDING_X_FORWARDED_FOR) (void)request_next_value(&lines, name, &value);
	return value;
}

struct slice upstream_scheme(const struct upstream_request *u) {
	const struct slice seen = u->arrival->secure ? SLICE("https") : SLICE("http");
	const struct slice said = said_by_proxy(u, SLICE("x-forwarded-proto"));
	if (!said.length) return seen;
	if (slice_equal_nocase(said, SLICE("https"))) return SLICE("https");
	return slice_equal_nocase(said, SLICE("http")) ? SLICE("http") : seen;
}

/* A hop before this server. */
struct hop {
	bool is_unix;
	struct slice text;
	char room[PEER_MAX];
};

static void name_hop(struct hop *hop, const struct peer *peer) {
	hop->is_unix = peer_is_unix(peer);
	hop->text = (struct slice){.at = hop->room, .length = peer_format(hop->room, peer)};
}

/* Writes the values of a list that a proxy has sent, for one more. */
static char *put_list(char *at, const struct request *q, enum field_name name) {
	for (unsigned i = 0; i < q->fields; i++)
		if (q->field[i].name == name && q->field[i].value.length) at = TEXT_JOIN(at, q->field[i].value, SLICE(", "));
	return at;
}

/* Writes the fields about the client. The last hop in a list is the proxy, if it has sent the list, or the client. */
static char *put_forwarded(char *at, const struct upstream_request *u) {
	const struct request *q = u->request;
	const enum forwarding by = u->arrival->forwarding;
	const bool lists_for = by == FORWARDING_X_FORWARDED_FOR && request_has(q, FIELD_X_FORWARDED_FOR),
			   lists_all = by == FORWARDING_FORWARDED && request_has(q, FIELD_FORWARDED);
	const struct slice seen = u->arrival->secure ? SLICE("https") : SLICE("http"), host = q->host,
					   scheme = by == FORWARDING_X_FORWARDED_FOR ? upstream_scheme(u) : seen,
					   said = said_by_proxy(u, SLICE("x-forwarded-host"));
	struct hop client, proxy;
	name_hop(&client, u->arrival->client);
	if (lists_for || lists_all) name_hop(&proxy, u->arrival->proxy);
	const struct hop *const last_for = lists_for ? &proxy : &client, *const last = lists_all ? &proxy : &client;
	if (!last_for->is_unix) {
		at = text_copy(at, SLICE("X-Forwarded-For: "));
		if (lists_for) at = put_list(at, q, FIELD_X_FORWARDED_FOR);
		at = TEXT_JOIN(at, last_for->text, SLICE("\r\n"));
	}
	if (!client.is_unix) at = TEXT_JOIN(at, SLICE("X-Real-IP: "), client.text, SLICE("\r\n"));
	at = TEXT_JOIN(at, SLICE("X-Forwarded-Proto: "), scheme, SLICE("\r\n"));
	if (said.length || host.length)
		at = TEXT_JOIN(at, SLICE("X-Forwarded-Host: "), said.length ? said : host, SLICE("\r\n"));
	at = text_copy(at, SLICE("Forwarded: "));
	if (lists_all) at = put_list(at, q, FIELD_FORWARDED);
	/* RFC 7239, section 6 */
	const bool ipv6 = !last->is_unix && memchr(last->text.at, ':', last->text.length);
	at = TEXT_JOIN(at, ipv6 ? SLICE("for=\"[") : SLICE("for="), last->is_unix ? SLICE("unknown") : last->text,
				   ipv6 ? SLICE("]\";proto=") : SLICE(";proto="), seen, host.length ? SLICE(";host=\"") : SLICE(""),
				   host, host.length ? SLICE("\"\r\n") : SLICE("\r\n")); /* host_valid(): no quotes */
	return at;
}

/* Writes a key, which HTTP/2 does not have (RFC 8441, section 5.1). It is not secret: it shows that a response belongs
 * to this request, and only has to differ from the keys of others. */
static char *put_websocket_key(char *at) {
	unsigned char nonce[16];
	if (RAND_bytes(nonce, sizeof nonce) != 1) memset(nonce, 0, sizeof nonce);
	at = text_copy(at, SLICE("Sec-WebSocket-Key: "));
	at += EVP_EncodeBlock((unsigned char *)at, nonce, sizeof nonce);
	return text_copy(at, SLICE("\r\n"));
}

/* Returns whether the method has content, so that its absence has to be said (RFC 9110, section 8.6). */
static bool has_content(const struct request *q) {
	static const struct slice methods[] = {SLICE("POST"), SLICE("PUT"), SLICE("PATCH")};
	return q->method > METHOD_HEAD && slice_is_one_of(q->method_name, methods, sizeof methods / sizeof *methods);
}

size_t upstream_request_head(char *out, const struct upstream_request *u) {
	const struct request *q = u->request;
	struct connection_options c;
	struct slice rest = q->lines;
	bool takes_trailers = false;
	char *at =
		TEXT_JOIN(out, q->method_name, SLICE(" "), u->target, SLICE(" HTTP/1.1\r\nHost: "), u->host, SLICE("\r\n"));
	find_connection(q, &c);
	for (struct line line; rest.length && next_line(&rest, LINES_STRICT, &line) == 1;) {
		if (passes(u, &c, &line)) at = text_copy(at, line.whole);
		takes_trailers |= line.treatment == CODINGS_TAKEN && slice_has_element_nocase(line.value, SLICE("trailers"));
	}
	at = put_forwarded(at, u);
	if (q->framing == BODY_CHUNKED) at = text_copy(at, SLICE("Transfer-Encoding: chunked\r\n"));
	const bool said =
		q->framing == BODY_NONE && !q->websocket && (request_has(q, FIELD_CONTENT_LENGTH) || has_content(q));
	if (q->framing == BODY_LENGTH || said) at = field_line_put_length(at, q->content_length);
	if (q->expect_continue) at = text_copy(at, SLICE("Expect: 100-continue\r\n"));
	if (u->upgrades) at = text_copy(at, SLICE("Connection: upgrade\r\nUpgrade: websocket\r\n"));
	else if (takes_trailers) at = text_copy(at, SLICE("Connection: TE\r\nTE: trailers\r\n"));
	if (q->websocket) at = put_websocket_key(at);
	at = text_copy(at, SLICE("\r\n"));
	return (size_t)(at - out);
}

/* --- trailers --- */

size_t upstream_trailers(struct slice section, char *out) {
	static const struct slice never[] = {SLICE("age"),
										 SLICE("authorization"),
										 SLICE("cache-control"),
										 SLICE("content-encoding"),
										 SLICE("content-range"),
										 SLICE("content-type"),
										 SLICE("cookie"),
										 SLICE("expires"),
										 SLICE("location"),
										 SLICE("max-forwards"),
										 SLICE("pragma"),
										 SLICE("proxy-authenticate"),
										 SLICE("proxy-authorization"),
										 SLICE("range"),
										 SLICE("retry-after"),
										 SLICE("set-cookie"),
										 SLICE("trailer"),
										 SLICE("vary"),
										 SLICE("www-authenticate")};
	struct line line;
	char *at = out;
	for (unsigned n = 0;
		 n < FIELDS_MAX && line_end(section, false) < 0 && next_line(&section, LINES_STRICT, &line) == 1; n++)
		if (line.treatment == PASSED_ON && !IS_ONE_OF(line.name, never) &&
			!slice_starts_nocase(line.name, SLICE("if-")) && !memchr(line.name.at, '_', line.name.length))
			at = field_line_put(at, line.name, line.value);
	return (size_t)(at - out);
}

/* --- the response --- */

/* Parses "HTTP/1.1 200 OK". */
static bool parse_status_line(struct upstream_response *r, struct slice line) {
	const char *const at = line.at;
	if (line.length < 12 || !slice_starts(line, SLICE("HTTP/1.")) || at[7] < '0' || at[7] > '9' || at[8] != ' ')
		return false;
	r->keep_alive = at[7] != '0';
	for (int i = 9; i < 12; i++) {
		const unsigned digit = (unsigned)at[i] - '0';
		if (digit > 9) return false;
		r->status = r->status * 10 + (int)digit;
	}
	if (r->status < 100 || (line.length > 12 && at[12] != ' ')) return false;
	r->reason = slice_rest(line, line.length > 12 ? 13 : 12);
	return true;
}

/* Notes a field that affects the framing or the connection. Returns false if it is malformed or ambiguous. */
static bool note_field(struct upstream_response *r, const struct line *line, struct connection_options *c) {
	const bool first = r->framing == BODY_NONE;
	switch (line->treatment) {
	case LENGTH: r->framing = BODY_LENGTH; return first && !content_length_parse(line->value, &r->content_length);
	case CODING:
		r->framing = BODY_CHUNKED;
		return first && r->keep_alive && slice_equal_nocase(line->value, SLICE("chunked")); /* not with HTTP/1.0 */
	case OPTIONS: return add_options(c, line->value);
	default: return true;
	}
}

/* Determines the framing, and whether the connection can be used again (RFC 9112, section 6.3). */
static void settle_framing(struct upstream_response *r, const struct connection_options *c, bool head_only) {
	if (is_named(c, SLICE("close")) || (!r->keep_alive && !is_named(c, SLICE("keep-alive")))) r->keep_alive = false;
	else r->keep_alive = true;
	bool bodiless = head_only || r->status < 200 || r->status == 204 || r->status == 304;
	/* some upstreams send the content that they announce nevertheless */
	if (r->status < 200 || r->status == 204) r->keep_alive &= r->framing != BODY_CHUNKED && !r->content_length;
	if (r->status == 304) r->keep_alive &= r->framing != BODY_CHUNKED;
	r->until_close = !bodiless && r->framing == BODY_NONE;
	if (bodiless) r->framing = BODY_NONE;
}

/* Writes the field lines for the client. Content-Length is written only if no content of that length follows. */
static size_t put_lines(char *out, const struct line *line, unsigned count, const struct upstream_response *r,
						const struct connection_options *c, bool cgi) {
	char *at = out;
	for (const struct line *end = line + count; line < end; line++) {
		if (line->treatment == LENGTH && (r->framing != BODY_NONE || r->status < 200 || r->status == 204)) continue;
		if (line->treatment == OF_RESPONSE || (cgi && slice_equal_nocase(line->name, SLICE("status")))) continue;
		if (!is_of_connection(c, line)) at = field_line_put(at, line->name, line->value);
	}
	return (size_t)(at - out);
}

/* Parses a status such as "404 Not Found". Returns false if it is malformed. */
static bool note_status(struct upstream_response *r, struct slice value) {
	char line[64];
	struct slice text = slice_first(value, value.length < 48 ? value.length : 48);
	const char *end = TEXT_JOIN(line, SLICE("HTTP/1.1 "), text);
	r->status = 0;
	if (!parse_status_line(r, (struct slice){.at = line, .length = (size_t)(end - line)}) || r->status < 200)
		return false;
	r->reason = value.length > 4 ? slice_rest(value, 4) : (struct slice){0};
	return true;
}

/* Handles fields that only programs use. Returns false if one is malformed. */
static bool note_cgi_field(struct upstream_response *r, const struct line *line, bool *has_status) {
	if (slice_equal_nocase(line->name, SLICE("status"))) {
		*has_status = true;
		return note_status(r, line->value);
	}
	if (slice_equal_nocase(line->name, SLICE("location")) && !*has_status) r->status = 302;
	return line->treatment != CODING;
}

/* Parses field lines, and the empty line after them. Returns their length, or 0 or -1 as upstream_response_parse(). */
static int parse_fields(struct upstream_response *r, struct slice fields, bool cgi, bool head_only, char *lines) {
	struct line line[UPSTREAM_FIELDS_MAX + 1];
	struct connection_options c;
	struct slice rest = fields;
	unsigned count = 0;
	int end;
	bool has_status = false;
	c.count = 0;
	while ((end = line_end(rest, cgi)) < 0) {
		int got = next_line(&rest, cgi ? LINES_PROGRAM : LINES_RESPONSE, &line[count]);
		if (got <= 0) return got;
		if (count == UPSTREAM_FIELDS_MAX || !note_field(r, &line[count], &c) ||
			(cgi && !note_cgi_field(r, &line[count], &has_status)))
			return -1;
		count++;
	}
	if (end == 0) return 0;
	slice_drop(&rest, (size_t)end);
	if (fields.length - rest.length > UPSTREAM_HEAD_MAX) return -1;
	settle_framing(r, &c, head_only);
	r->lines = put_lines(lines, line, count, r, &c, cgi);
	return (int)(fields.length - rest.length);
}

/* Returns the result for a head of which length bytes have come. fields: the result of parse_fields(); before: the
 * bytes before the fields. */
static int whole(int fields, size_t before, size_t length) {
	if (fields == 0) return length < UPSTREAM_HEAD_MAX ? 0 : -1;
	return fields < 0 || (size_t)fields + before > UPSTREAM_HEAD_MAX ? -1 : fields + (int)before;
}

int upstream_response_parse(struct upstream_response *r, const char *buffer, size_t length, bool head_only,
							char *lines) {
	struct slice rest = {.at = buffer, .length = length};
	const struct slice first = chars_take(&rest, CHAR_TEXT);
	*r = (struct upstream_response){0};
	int end = line_end(rest, false);
	if (end == 0) return whole(0, 0, length);
	if (end < 0 || !parse_status_line(r, first)) return -1;
	slice_drop(&rest, (size_t)end);
	return whole(parse_fields(r, rest, false, head_only, lines), length - rest.length, length);
}

int upstream_cgi_response_parse(struct upstream_response *r, const char *buffer, size_t length, bool head_only,
								char *lines) {
	*r = (struct upstream_response){.status = 200};
	int fields = parse_fields(r, (struct slice){.at = buffer, .length = length}, true, head_only, lines);
	r->keep_alive = false;
	return whole(fields, 0, length);
}

bool upstream_next_field(struct slice *lines, struct upstream_field *field) {
	struct line line;
	if (!lines->length || next_line(lines, LINES_RESPONSE, &line) != 1) return false;
	*field = (struct upstream_field){.name = line.name, .value = line.value};
	return true;
}
