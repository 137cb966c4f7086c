/* upstream_cgi.c - see upstream_cgi.h. */
#include "gatling/upstream/upstream_cgi.h"

#include <ctype.h>
#include <stdio.h>

#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"

/* --- variables --- */

/* Writes a name and a value in the form of a protocol. Returns the end. */
typedef char *put_variable(char *at, struct slice name, struct slice value);

/* Writes a variable for SCGI: its name and its value, each with a NUL. */
static char *put_scgi(char *at, struct slice name, struct slice value) {
	at = text_copy(at, name);
	*at++ = '\0';
	at = text_copy(at, value);
	*at++ = '\0';
	return at;
}

/* Writes a length for FastCGI, in one byte or four (section 3.4). */
static char *put_length(char *at, size_t n) {
	if (n > 127) {
		*at++ = (char)(n >> 24 | 0x80);
		*at++ = (char)(n >> 16);
		*at++ = (char)(n >> 8);
	}
	*at++ = (char)n;
	return at;
}

static char *put_fcgi(char *at, struct slice name, struct slice value) {
	at = put_length(put_length(at, name.length), value.length);
	return TEXT_JOIN(at, name, value);
}

static char *put_number(char *at, put_variable *put, struct slice name, uint64_t n) {
	char digits[32];
	const char *end = text_copy_number(digits, n);
	return put(at, name, (struct slice){.at = digits, .length = (size_t)(end - digits)});
}

static bool is_named(const struct upstream_field *f, struct slice name) { return slice_equal_nocase(f->name, name); }

/* Writes a field as HTTP_NAME, in capital letters and with '_' for '-' (section 4.1.18). */
static char *put_field(char *at, put_variable *put, struct slice name, struct slice value) {
	char text[5 + HEAD_MAX], *end = TEXT_JOIN(text, SLICE("HTTP_"), name);
	for (char *c = text; c < end; c++) {
		if (*c == '-') *c = '_';
		else if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
	}
	return put(at, (struct slice){.at = text, .length = (size_t)(end - text)}, value);
}

/* Returns whether a field name is unambiguous as a variable: PHP replaces '.' with '_', too, and shells allow nothing
 * else. */
static bool is_plain(struct slice name) {
	for (size_t i = 0; i < name.length; i++)
		if (!isalnum((unsigned char)name.at[i]) && name.at[i] != '-') return false;
	return name.length;
}

/* Writes the fields. Those that came more than once are joined (RFC 9110, section 5.3), Cookie with semicolons (RFC
 * 6265). */
static char *put_fields(char *at, put_variable *put, struct upstream_field *field, unsigned count) {
	char joined[HEAD_MAX + 2 * FIELDS_MAX];
	for (struct upstream_field *f = field; f < field + count; f++) {
		struct slice separator = is_named(f, SLICE("cookie")) ? SLICE("; ") : SLICE(", ");
		if (!is_plain(f->name)) continue;
		const bool is_type = is_named(f, SLICE("content-type"));
		char *end = text_copy(joined, f->value);
		for (struct upstream_field *other = f + 1; other < field + count; other++) {
			if (!is_named(other, f->name)) continue;
			end = TEXT_JOIN(end, separator, other->value);
			other->name.length = 0;
		}
		struct slice value = {.at = joined, .length = (size_t)(end - joined)};
		at = is_type ? put(at, SLICE("CONTENT_TYPE"), value) : put_field(at, put, f->name, value);
	}
	return at;
}

/* Writes the path and query that the client has sent. */
static char *put_uri(char *at, put_variable *put, const struct request *q) {
	char uri[2 * TARGET_MAX];
	const char *end = TEXT_JOIN(uri, q->path, q->query);
	return put(at, SLICE("REQUEST_URI"), (struct slice){.at = uri, .length = (size_t)(end - uri)});
}

static char *put_paths(char *at, put_variable *put, const struct upstream_script *s) {
	char text[SCRIPT_ROOT_MAX + TARGET_MAX + 1];
	const char *end = TEXT_JOIN(text, s->name, s->info);
	at = put(at, SLICE("SCRIPT_NAME"), s->name);
	at = put(at, SLICE("DOCUMENT_URI"), (struct slice){.at = text, .length = (size_t)(end - text)});
	at = put(at, SLICE("DOCUMENT_ROOT"), s->root);
	if (s->is_file) {
		end = TEXT_JOIN(text, s->root, s->name);
		at = put(at, SLICE("SCRIPT_FILENAME"), (struct slice){.at = text, .length = (size_t)(end - text)});
	}
	if (!s->info.length) return at;
	end = TEXT_JOIN(text, s->root, s->info);
	at = put(at, SLICE("PATH_INFO"), s->info);
	if (put == put_fcgi && !s->is_file) return at; /* PHP would run that as the script */
	return put(at, SLICE("PATH_TRANSLATED"), (struct slice){.at = text, .length = (size_t)(end - text)});
}

static char *put_client(char *at, put_variable *put, const struct upstream_request *u) {
	char address[PEER_MAX];
	struct slice client = {.at = address, .length = peer_format(address, u->arrival->client)};
	if (!peer_is_unix(u->arrival->client)) at = put(at, SLICE("REMOTE_ADDR"), client);
	if (!u->user.at) return at;
	return put(put(at, SLICE("AUTH_TYPE"), SLICE("Basic")), SLICE("REMOTE_USER"), u->user);
}

static char *put_variables(char *at, put_variable *put, const struct upstream_request *u) {
	const struct request *q = u->request;
	const struct slice scheme = upstream_scheme(u);
	struct upstream_field field[FIELDS_MAX];
	char name[HOST_MAX + 1];
	struct slice server = {.at = name, .length = u->request->host.length ? host_name(u->request->host, name) : 0};
	struct slice query = slice_rest(u->target, slice_until(u->target, '?'));
	if (query.length) slice_drop(&query, 1);
	at = put(at, SLICE("GATEWAY_INTERFACE"), SLICE("CGI/1.1"));
	at = put(at, SLICE("SERVER_SOFTWARE"), SLICE("gatling"));
	at = put(at, SLICE("SERVER_PROTOCOL"), q->minor == 0 ? SLICE("HTTP/1.0") : SLICE("HTTP/1.1"));
	at = put(at, SLICE("SERVER_NAME"), server.length ? server : SLICE("localhost")); /* never empty */
	if (u->arrival->port) at = put_number(at, put, SLICE("SERVER_PORT"), u->arrival->port);
	at = put(at, SLICE("REQUEST_SCHEME"), scheme);
	if (slice_equal(scheme, SLICE("https"))) at = put(at, SLICE("HTTPS"), SLICE("on"));
	at = put(at, SLICE("REDIRECT_STATUS"), SLICE("200")); /* PHP runs nothing without it */
	at = put(at, SLICE("REQUEST_METHOD"), q->method_name);
	at = put(at, SLICE("QUERY_STRING"), query);
	at = put_paths(put_uri(at, put, q), put, u->script);
	at = put_client(at, put, u);
	if (u->request->host.length) at = put(at, SLICE("HTTP_HOST"), u->request->host);
	return put_fields(at, put, field, upstream_fields(u, field));
}

/* --- SCGI --- */

size_t upstream_scgi_head(char *out, const struct upstream_request *u) {
	enum { LENGTH_ROOM = 24 };
	char digits[32], *start = out + LENGTH_ROOM;
	char *end = put_number(start, put_scgi, SLICE("CONTENT_LENGTH"), u->request->content_length); /* must be first */
	end = put_scgi(end, SLICE("SCGI"), SLICE("1"));
	end = put_variables(end, put_scgi, u);
	int n = sprintf(digits, "%zu:", (size_t)(end - start));
	memmove(out + n, start, (size_t)(end - start));
	memcpy(out, digits, (size_t)n);
	end += out + n - start;
	*end++ = ',';
	return (size_t)(end - out);
}

/* --- FastCGI --- */

enum { BEGIN_REQUEST = 1, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6, STDERR = 7 };
enum { VERSION = 1, REQUEST_ID = 1, ROLE_RESPONDER = 1, CANNOT_MULTIPLEX = 1, OVERLOADED = 2 };

static void put_header(char *out, unsigned type, size_t length, size_t padding) {
	const unsigned char header[FCGI_HEADER] = {VERSION,
											   (unsigned char)type,
											   0,
											   REQUEST_ID,
											   (unsigned char)(length >> 8),
											   (unsigned char)length,
											   (unsigned char)padding};
	memcpy(out, header, sizeof header);
}

void fcgi_put_header(char *out, size_t length) { put_header(out, STDIN, length, 0); }

void fcgi_set_length(char *head, size_t head_length, bool known, uint64_t content_length) {
	enum { ROOM = FCGI_LENGTH_ROOM - 2 * FCGI_HEADER };
	char *record = head + head_length - FCGI_LENGTH_ROOM, *at = record + FCGI_HEADER;
	memset(at, 0, ROOM);
	const char *end = known ? put_number(at, put_fcgi, SLICE("CONTENT_LENGTH"), content_length)
							: put_fcgi(at, SLICE("HTTP_TRANSFER_ENCODING"), SLICE("chunked"));
	size_t length = (size_t)(end - at);
	put_header(record, PARAMS, length, ROOM - length);
}

size_t upstream_fcgi_head(char *out, const struct upstream_request *u) {
	char *const variables = WORKSPACE(UPSTREAM_CGI_MAX);
	char *at = out, *end = put_variables(variables, put_fcgi, u);
	if (u->request->framing == BODY_LENGTH || request_has(u->request, FIELD_CONTENT_LENGTH))
		end = put_number(end, put_fcgi, SLICE("CONTENT_LENGTH"), u->request->content_length);
	put_header(at, BEGIN_REQUEST, FCGI_HEADER, 0);
	memcpy(at + FCGI_HEADER, "\0\1\0\0\0\0\0\0", FCGI_HEADER); /* a responder; the connection ends with it */
	at += 2 * FCGI_HEADER;
	struct slice rest = {.at = variables, .length = (size_t)(end - variables)};
	while (rest.length) {
		struct slice piece = slice_first(rest, rest.length < FCGI_CONTENT_MAX ? rest.length : FCGI_CONTENT_MAX);
		put_header(at, PARAMS, piece.length, 0);
		at = text_copy(at + FCGI_HEADER, piece);
		slice_drop(&rest, piece.length);
	}
	if (u->request->framing == BODY_CHUNKED) at += FCGI_LENGTH_ROOM - FCGI_HEADER;
	put_header(at, PARAMS, 0, 0); /* the end of the variables */
	at += FCGI_HEADER;
	if (u->request->framing == BODY_NONE) {
		put_header(at, STDIN, 0, 0);
		at += FCGI_HEADER;
	}
	return (size_t)(at - out);
}

/* Reports the standard error of a program, line by line. */
static void take_complaint(struct fcgi_records *r, struct slice s, void (*complain)(void *context, struct slice line),
						   void *context) {
	for (; s.length && r->complained < FCGI_COMPLAINTS_MAX; slice_drop(&s, 1)) {
		bool ends = s.at[0] == '\n';
		if (!ends) r->complaint[r->complaint_length++] = s.at[0];
		r->complained++;
		if (!ends && r->complaint_length < sizeof r->complaint) continue;
		if (r->complaint_length) complain(context, (struct slice){.at = r->complaint, .length = r->complaint_length});
		r->complaint_length = 0;
	}
}

/* Fills `to`, of eight bytes, of which it has *have. Returns how many bytes it has taken. */
static size_t take_eight(uint8_t *to, unsigned *have, const char *bytes, size_t length) {
	size_t n = FCGI_HEADER - *have;
	if (n > length) n = length;
	memcpy(to + *have, bytes, n);
	*have += (unsigned)n;
	return n;
}

/* Handles the complete header of a record. Returns false if it is malformed. */
static bool begin_record(struct fcgi_records *r) {
	r->content = (unsigned)r->header[4] << 8 | r->header[5];
	r->padding = r->header[6];
	r->end_have = 0;
	unsigned type = r->header[1];
	if (type == END_REQUEST && r->content != FCGI_HEADER) return false;
	return r->header[0] == VERSION && r->header[2] == 0 && r->header[3] == REQUEST_ID && type != 0;
}

ssize_t fcgi_read(struct fcgi_records *r, char *bytes, size_t length,
				  void (*complain)(void *context, struct slice line), void *context) {
	char *out = bytes;
	for (size_t at = 0, n; at < length && !r->ended; at += n) {
		if (r->have < FCGI_HEADER) {
			n = take_eight(r->header, &r->have, bytes + at, length - at);
			if (r->have == FCGI_HEADER && !begin_record(r)) return -1;
		} else if (r->content) {
			n = length - at < r->content ? length - at : r->content;
			struct slice content = {.at = bytes + at, .length = n};
			if (r->header[1] == STDERR) take_complaint(r, content, complain, context);
			if (r->header[1] == END_REQUEST) take_eight(r->end, &r->end_have, content.at, n);
			if (r->header[1] == STDOUT) memmove(out, content.at, n);
			if (r->header[1] == STDOUT) out += n;
			r->content -= (unsigned)n;
		} else {
			n = length - at < r->padding ? length - at : r->padding;
			r->padding -= (unsigned)n;
		}
		if (r->have < FCGI_HEADER || r->content) continue;
		r->ended = r->header[1] == END_REQUEST;
		if (!r->padding) r->have = 0;
	}
	if (r->ended) fcgi_finish(r, complain, context);
	return out - bytes;
}

void fcgi_finish(struct fcgi_records *r, void (*complain)(void *context, struct slice line), void *context) {
	if (r->complaint_length) complain(context, (struct slice){.at = r->complaint, .length = r->complaint_length});
	r->complaint_length = 0;
}

bool fcgi_is_overloaded(const struct fcgi_records *r) {
	return r->end[4] == OVERLOADED || r->end[4] == CANNOT_MULTIPLEX;
}
