/* upstream_head.c - see upstream_head.h. */
#include "gatling/upstream/upstream_head.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "gatling/base/slice.h"
#include "gatling/http/chars.h"
#include "gatling/http/field_line.h"

/* --- field lines --- */

struct line {
	struct slice name, value, whole; /* whole: with its CRLF */
};

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
	return slice_is_one_of_nocase(name, c->option, c->count);
}

static bool is_of_connection(const struct connection_options *c, struct slice name) {
	static const struct slice names[] = {SLICE("connection"), SLICE("keep-alive"),        SLICE("proxy-connection"),
										 SLICE("te"),         SLICE("transfer-encoding"), SLICE("upgrade")};
	return IS_ONE_OF(name, names) || is_named(c, name);
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

/* Returns whether a field says who the client is, what it has connected to or what it has asked for, in the place of
 * the request itself: something that only proxies write, and that applications believe. */
static bool is_of_proxies(struct slice name) {
	static const struct slice names[] = {SLICE("cf-connecting-ip"),
										 SLICE("cf-connecting-ipv6"),
										 SLICE("client-cert"),
										 SLICE("client-cert-chain"),
										 SLICE("client-ip"),
										 SLICE("fastly-client-ip"),
										 SLICE("fly-client-ip"),
										 SLICE("forwarded"),
										 SLICE("forwarded-for"),
										 SLICE("front-end-https"),
										 SLICE("http-client-ip"),
										 SLICE("proxy-client-ip"),
										 SLICE("remote-addr"),
										 SLICE("remote-email"),
										 SLICE("remote-groups"),
										 SLICE("remote-name"),
										 SLICE("remote-user"),
										 SLICE("true-client-ip"),
										 SLICE("wl-proxy-client-ip"),
										 SLICE("x-azure-clientip"),
										 SLICE("x-azure-socketip"),
										 SLICE("x-client-cert"),
										 SLICE("x-client-ip"),
										 SLICE("x-cluster-client-ip"),
										 SLICE("x-envoy-external-address"),
										 SLICE("x-forwarded"),
										 SLICE("x-host"),
										 SLICE("x-originating-ip"),
										 SLICE("x-proxyuser-ip"),
										 SLICE("x-real-ip"),
										 SLICE("x-remote-addr"),
										 SLICE("x-remote-ip"),
										 SLICE("x-remote-user"),
										 SLICE("x-rewrite-url"),
										 SLICE("x-scheme"),
										 SLICE("x-url-scheme")};
	static const struct slice starts[] = {SLICE("ssl-client-"), SLICE("x-auth-request-"), SLICE("x-forwarded-"),
										  SLICE("x-original-"), SLICE("x-ssl-")};
	return slice_starts_as_one_of_nocase(name, starts, sizeof starts / sizeof *starts) || IS_ONE_OF(name, names);
}

/* Returns whether a field of the client is passed on. */
static bool passes(const struct upstream_request *u, const struct connection_options *c, struct slice name) {
	static const struct slice ours[] = {
		SLICE("host"),      SLICE("content-length"),   SLICE("x-forwarded-for"), SLICE("x-forwarded-proto"),
		SLICE("forwarded"), SLICE("x-forwarded-host"), SLICE("http2-settings"),  SLICE("proxy"),
		SLICE("expect"),    SLICE("x-real-ip")};
	/* the upstream gets another key */
	if (u->request->websocket && slice_equal_nocase(name, SLICE("sec-websocket-key"))) return false;
	if (is_of_proxies(name) && u->arrival->forwarding != FORWARDING_X_FORWARDED_FOR) return false;
	return !IS_ONE_OF(name, ours) && !memchr(name.at, '_', name.length) && !is_of_connection(c, name);
}

unsigned upstream_fields(const struct upstream_request *u, struct upstream_field *fields) {
	const struct request *q = u->request;
	struct connection_options c;
	struct slice rest = q->lines;
	unsigned count = 0;
	find_connection(q, &c);
	for (struct line line; count < FIELDS_MAX && rest.length && next_line(&rest, LINES_STRICT, &line) == 1;)
		if (passes(u, &c, line.name)) fields[count++] = (struct upstream_field){.name = line.name, .value = line.value};
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

/* Begins the line of a list, with the proxy's values if it writes this field. */
static char *put_list(char *at, const struct upstream_request *u, struct slice name, enum field_name field,
					  enum forwarding by) {
	const struct request *q = u->request;
	at = TEXT_JOIN(at, name, SLICE(": "));
	for (unsigned i = 0; u->arrival->forwarding == by && i < q->fields; i++)
		if (q->field[i].name == field && q->field[i].value.length) at = TEXT_JOIN(at, q->field[i].value, SLICE(", "));
	return at;
}

/* Writes an address in the form of RFC 7239, section 6. */
static char *put_node(char *at, const struct peer *peer) {
	const bool quoted = !peer_is_ipv4(peer);
	if (peer_is_unix(peer)) return text_copy(at, SLICE("unknown"));
	if (quoted) *at++ = '"';
	at += peer_format_host(at, peer);
	if (quoted) *at++ = '"';
	return at;
}

/* Returns the last hop before this server in a list: the proxy, if it has sent the list, or the client. */
static const struct peer *last_hop(const struct upstream_request *u, enum field_name field, enum forwarding by) {
	return u->arrival->forwarding == by && request_has(u->request, field) ? u->arrival->proxy : u->arrival->client;
}

/* Writes the fields about the client. */
static char *put_forwarded(char *at, const struct upstream_request *u) {
	const struct peer *last = last_hop(u, FIELD_X_FORWARDED_FOR, FORWARDING_X_FORWARDED_FOR);
	const struct slice scheme = u->arrival->secure ? SLICE("https") : SLICE("http"), host = u->request->host;
	const struct slice said = said_by_proxy(u, SLICE("x-forwarded-host"));
	if (!peer_is_unix(last)) {
		at = put_list(at, u, SLICE("X-Forwarded-For"), FIELD_X_FORWARDED_FOR, FORWARDING_X_FORWARDED_FOR);
		at += peer_format(at, last);
		at = text_copy(at, SLICE("\r\n"));
	}
	if (!peer_is_unix(u->arrival->client)) {
		at = text_copy(at, SLICE("X-Real-IP: "));
		at += peer_format(at, u->arrival->client);
		at = text_copy(at, SLICE("\r\n"));
	}
	at = TEXT_JOIN(at, SLICE("X-Forwarded-Proto: "), upstream_scheme(u), SLICE("\r\n"));
	if (said.length || host.length)
		at = TEXT_JOIN(at, SLICE("X-Forwarded-Host: "), said.length ? said : host, SLICE("\r\n"));
	at = put_list(at, u, SLICE("Forwarded"), FIELD_FORWARDED, FORWARDING_FORWARDED);
	at = put_node(text_copy(at, SLICE("for=")), last_hop(u, FIELD_FORWARDED, FORWARDING_FORWARDED));
	if (!host.length) return TEXT_JOIN(at, SLICE(";proto="), scheme, SLICE("\r\n"));
	return TEXT_JOIN(at, SLICE(";proto="), scheme, SLICE(";host=\""), host,
					 SLICE("\"\r\n")); /* host_valid(): no quotes */
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
static bool has_content(struct slice method) {
	static const struct slice methods[] = {SLICE("POST"), SLICE("PUT"), SLICE("PATCH")};
	return slice_is_one_of(method, methods, sizeof methods / sizeof *methods);
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
		if (passes(u, &c, line.name)) at = text_copy(at, line.whole);
		takes_trailers |=
			slice_equal_nocase(line.name, SLICE("te")) && slice_has_element_nocase(line.value, SLICE("trailers"));
	}
	at = put_forwarded(at, u);
	if (q->framing == BODY_CHUNKED) at = text_copy(at, SLICE("Transfer-Encoding: chunked\r\n"));
	const bool said = q->framing == BODY_NONE && !q->websocket &&
					  (request_has(q, FIELD_CONTENT_LENGTH) || has_content(q->method_name));
	if (q->framing == BODY_LENGTH || said) at = field_line_put_length(at, q->content_length);
	if (q->expect_continue) at = text_copy(at, SLICE("Expect: 100-continue\r\n"));
	if (upstream_upgrades(q)) at = text_copy(at, SLICE("Connection: upgrade\r\nUpgrade: websocket\r\n"));
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
										 SLICE("content-length"),
										 SLICE("content-range"),
										 SLICE("content-type"),
										 SLICE("cookie"),
										 SLICE("date"),
										 SLICE("expect"),
										 SLICE("expires"),
										 SLICE("host"),
										 SLICE("location"),
										 SLICE("max-forwards"),
										 SLICE("pragma"),
										 SLICE("proxy"),
										 SLICE("proxy-authenticate"),
										 SLICE("proxy-authorization"),
										 SLICE("range"),
										 SLICE("retry-after"),
										 SLICE("server"),
										 SLICE("set-cookie"),
										 SLICE("trailer"),
										 SLICE("vary"),
										 SLICE("www-authenticate")};
	static const struct connection_options none;
	struct line line;
	char *at = out;
	for (unsigned n = 0;
		 n < FIELDS_MAX && line_end(section, false) < 0 && next_line(&section, LINES_STRICT, &line) == 1; n++)
		if (!IS_ONE_OF(line.name, never) && !slice_starts_nocase(line.name, SLICE("if-")) &&
			!is_of_proxies(line.name) && !memchr(line.name.at, '_', line.name.length) &&
			!is_of_connection(&none, line.name))
			at = field_line_put(at, line.name, line.value);
	return (size_t)(at - out);
}

/* --- the response --- */

/* Parses "HTTP/1.1 200 OK". */
static bool parse_status_line(struct upstream_response *r, struct slice line) {
	if (line.length < 12 || !slice_starts(line, SLICE("HTTP/1.")) || !text_is_digit(line.at[7]) || line.at[8] != ' ')
		return false;
	r->keep_alive = line.at[7] != '0';
	for (int i = 9; i < 12; i++) {
		if (!text_is_digit(line.at[i])) return false;
		r->status = r->status * 10 + (line.at[i] - '0');
	}
	if (r->status < 100 || (line.length > 12 && line.at[12] != ' ')) return false;
	r->reason = slice_rest(line, line.length > 12 ? 13 : 12);
	return true;
}

/* Notes a field that affects the framing or the connection. Returns false if it is malformed or ambiguous. */
static bool note_field(struct upstream_response *r, const struct line *line, struct connection_options *c) {
	const bool first = r->framing == BODY_NONE;
	switch (request_field_name(line->name)) {
	case FIELD_CONTENT_LENGTH:
		r->framing = BODY_LENGTH;
		return first && !content_length_parse(line->value, &r->content_length);
	case FIELD_TRANSFER_ENCODING:
		r->framing = BODY_CHUNKED;
		return first && r->keep_alive && slice_equal_nocase(line->value, SLICE("chunked")); /* not with HTTP/1.0 */
	case FIELD_CONNECTION: return add_options(c, line->value);
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
	static const struct slice ours[] = {SLICE("date"), SLICE("server")};
	char *at = out;
	for (const struct line *end = line + count; line < end; line++) {
		bool length = slice_equal_nocase(line->name, SLICE("content-length"));
		if (length && (r->framing != BODY_NONE || r->status < 200 || r->status == 204)) continue;
		if (IS_ONE_OF(line->name, ours) || (cgi && slice_equal_nocase(line->name, SLICE("status")))) continue;
		if (!is_of_connection(c, line->name)) at = field_line_put(at, line->name, line->value);
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
	return !slice_equal_nocase(line->name, SLICE("transfer-encoding"));
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
	struct slice all = {.at = buffer, .length = length};
	struct slice first = slice_first(all, chars_span(all, CHAR_TEXT)), rest = slice_rest(all, first.length);
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
