/* response.c - see response.h. */
#include "gatling/site/response.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/gzip.h"
#include "gatling/base/owfat.h"

enum {
	FIELDS_ROOM = 1024,   /* bytes of what is neither the file's nor the owner's */
	PART_HEAD_ROOM = 256, /* bytes of the head of one part of multipart/byteranges, but for its media type */
	PAGE_ROOM = 256       /* and of the page that is nothing but a status */
};

const struct slice response_allow = SLICE("GET, HEAD, OPTIONS");

static const struct status {
	int code;
	struct slice line;
} statuses[] = {
#define STATUS(code, reason)                                                                                           \
	{ code, SLICE("HTTP/1.1 " #code " " reason "\r\n") }
	STATUS(200, "OK"),
	STATUS(206, "Partial Content"),
	STATUS(304, "Not Modified"),
	STATUS(404, "Not Found"),
	STATUS(204, "No Content"),
	STATUS(301, "Moved Permanently"),
	STATUS(302, "Found"),
	STATUS(303, "See Other"),
	STATUS(307, "Temporary Redirect"),
	STATUS(308, "Permanent Redirect"),
	STATUS(401, "Unauthorized"),
	STATUS(400, "Bad Request"),
	STATUS(403, "Forbidden"),
	STATUS(405, "Method Not Allowed"),
	STATUS(406, "Not Acceptable"),
	STATUS(408, "Request Timeout"),
	STATUS(410, "Gone"),
	STATUS(411, "Length Required"),
	STATUS(412, "Precondition Failed"),
	STATUS(413, "Content Too Large"),
	STATUS(414, "URI Too Long"),
	STATUS(416, "Range Not Satisfiable"),
	STATUS(417, "Expectation Failed"),
	STATUS(429, "Too Many Requests"),
	STATUS(431, "Request Header Fields Too Large"),
	STATUS(500, "Internal Server Error"),
	STATUS(501, "Not Implemented"),
	STATUS(503, "Service Unavailable"),
	STATUS(505, "HTTP Version Not Supported"),
};

void response_status(struct response *r, int status) {
	r->status = status;
	r->job = NULL;
	r->representation = NULL;
	r->ranges = 0;
	r->source.owner = NULL;
	r->page = r->location = r->lines = r->user = (struct slice){0};
}

struct slice response_status_line(int code) {
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == code) return statuses[i].line;
	abort(); /* a status that nobody has named here */
}

/* Text being written; there is always room. */
struct text {
	char *start, *at;
};

static void put(struct text *t, struct slice s) {
	memcpy(t->at, s.at, s.length);
	t->at += s.length;
}

static void put_number(struct text *t, uint64_t number) { t->at += fmt_ulonglong(t->at, number); }

static void put_content_length(struct text *t, uint64_t length) {
	put(t, SLICE("Content-Length: "));
	put_number(t, length);
	put(t, SLICE("\r\n"));
}

static void put_content_range(struct text *t, const struct range *range, uint64_t size) {
	put(t, SLICE("Content-Range: bytes "));
	put_number(t, range->first);
	put(t, SLICE("-"));
	put_number(t, range->first + range->length - 1);
	put(t, SLICE("/"));
	put_number(t, size);
	put(t, SLICE("\r\n"));
}

static struct slice from(struct slice s, size_t at) { return (struct slice){.at = s.at + at, .length = s.length - at}; }

/* --- multipart/byteranges, RFC 9110, section 14.6 --- */

static bool make_boundary(struct response *r) {
	unsigned char random[BOUNDARY_LENGTH / 2];
	if (RAND_bytes(random, sizeof random) != 1) return false;
	for (size_t i = 0; i < BOUNDARY_LENGTH; i++)
		r->boundary[i] = fmt_tohex((char)(i % 2 ? random[i / 2] & 15 : random[i / 2] >> 4));
	return true;
}

static struct slice boundary(const struct response *r) {
	return (struct slice){.at = r->boundary, .length = BOUNDARY_LENGTH};
}

/* The head of one part, to out (PART_HEAD_ROOM bytes, and those of the media type); its length. */
static size_t part_head(const struct response *r, int part, char *out) {
	struct text t = {.start = out, .at = out};
	put(&t, SLICE("\r\n--"));
	put(&t, boundary(r));
	put(&t, SLICE("\r\nContent-Type: "));
	put(&t, (struct slice){.at = r->representation->type, .length = strlen(r->representation->type)});
	put(&t, SLICE("\r\n"));
	put_content_range(&t, &r->range[part], r->representation->size);
	put(&t, SLICE("\r\n"));
	return (size_t)(t.at - t.start);
}

static uint64_t multipart_length(const struct response *r) {
	char head[PART_HEAD_ROOM + HEADER_OCTETS_MAX];
	uint64_t length = strlen("\r\n--") + BOUNDARY_LENGTH + strlen("--\r\n");
	for (int i = 0; i < r->ranges; i++) length += part_head(r, i, head) + r->range[i].length;
	return length;
}

/* Appends part of the file; takes one reference over. */
static int add_file(iob *batch, struct representation *f, uint64_t first, uint64_t length) {
	if (f->gzipped) {
		struct gzip_bytes stored = representation_stored(f);
		struct gzip_reader *reader = gzip_reader_new(&stored, representation_release, f);
		return reader ? iob_addsource(batch, length, gzip_reader_fill, gzip_reader_free, reader, GZIP_READER) : -1;
	}
	if (f->body) return iob_addbuf(batch, f->body + first, length, representation_release, f);
	return iob_addfile(batch, f->fd, (off_t)first, length, representation_release, f);
}

static int add_multipart(iob *batch, const struct response *r) {
	int result = 0;
	for (int i = 0; i < r->ranges && result == 0; i++) {
		char head[PART_HEAD_ROOM + HEADER_OCTETS_MAX];
		result = iob_addcopy(batch, head, part_head(r, i, head));
		if (result) break;
		representation_retain(r->representation);
		result = add_file(batch, r->representation, r->range[i].first, r->range[i].length);
	}
	representation_release(r->representation);
	if (result == 0) result = iob_addcopy(batch, "\r\n--", 4);
	if (result == 0) result = iob_addcopy(batch, r->boundary, BOUNDARY_LENGTH);
	return result ? result : iob_addcopy(batch, "--\r\n", 4);
}

/* --- what has nothing to show but its status --- */

static size_t status_page(int status, char *out) {
	struct slice line = response_status_line(status);
	size_t version = strlen("HTTP/1.1 "), end = strlen("\r\n");
	int words = (int)(line.length - version - end);
	return (size_t)snprintf(out, PAGE_ROOM, "<!doctype html>\n<title>%.*s</title>\n<h1>%.*s</h1>\n", words,
							line.at + version, words, line.at + version);
}

/* --- all kinds --- */

static void put_coding(struct text *t, const struct representation *f) {
	if (f->coding == CODING_IDENTITY) return;
	put(t, SLICE("Content-Encoding: "));
	put(t, coding_name[f->coding]);
	put(t, SLICE("\r\n"));
}

/* All with a file but for 416. */
static void put_file_fields(struct text *t, struct response *r, uint64_t *length) {
	const struct representation *f = r->representation;
	*length = r->ranges == 1 ? r->range[0].length : f->size;
	if (r->status == 304) {
		*length = 0;
		put(t, from(f->fields, f->validators_at));
	} else if (r->ranges > 1) {
		*length = multipart_length(r);
		put_content_length(t, *length);
		put_coding(t, f);
		put(t, SLICE("Content-Type: multipart/byteranges; boundary="));
		put(t, boundary(r));
		put(t, SLICE("\r\n" NOSNIFF_LINE));
		put(t, from(f->fields, f->validators_at));
	} else if (r->ranges) {
		put_content_length(t, *length);
		put_content_range(t, &r->range[0], f->size);
		put(t, from(f->fields, f->type_at));
	} else if (r->status != 200) { /* no validators: they would be taken for those of what was asked for */
		put(t, (struct slice){.at = f->fields.at, .length = f->validators_at});
		put(t, from(f->fields, f->owner_at));
	} else {
		put(t, f->fields);
	}
	if (r->lines.length) put(t, r->lines);
}

static void put_status_fields(struct text *t, const struct response *r, uint64_t *length) {
	char page[PAGE_ROOM];
	if (r->status == 204 || r->status == 405) {
		put(t, SLICE("Allow: "));
		put(t, response_allow);
		put(t, SLICE("\r\n"));
	}
	if (r->representation) { /* 416 */
		put(t, SLICE("Content-Range: bytes */"));
		put_number(t, r->representation->size);
		put(t, SLICE("\r\n"));
	}
	if (r->location.length) {
		put(t, SLICE("Location: "));
		put(t, r->location);
		put(t, SLICE("\r\n"));
	}
	*length = 0;
	if (r->lines.length) put(t, r->lines);
	if (r->status == 204) return;
	*length = r->source.owner ? r->source.length : r->page.at ? r->page.length : status_page(r->status, page);
	put_content_length(t, *length);
	put(t, SLICE("Content-Type: "));
	put(t, r->source.owner ? (struct slice){.at = r->source.type, .length = strlen(r->source.type)}
						   : SLICE("text/html; charset=utf-8"));
	put(t, SLICE("\r\n" NOSNIFF_LINE));
	if (r->source.owner && r->source.coding == CODING_GZIP) put(t, SLICE("Content-Encoding: gzip\r\n"));
	if (r->source.owner) put(t, SLICE("Vary: Accept-Encoding\r\n"));
}

size_t response_fields_room(const struct response *r) {
	size_t file = r->representation ? r->representation->fields.length : 0;
	return FIELDS_ROOM + r->location.length + r->lines.length + file;
}

static bool is_file(const struct response *r) { return r->representation && r->status != 416; }

size_t response_fields(struct response *r, char *out, uint64_t *content_length) {
	struct text t = {.start = out, .at = out};
	if (r->ranges > 1 && !make_boundary(r)) return 0;
	if (is_file(r)) put_file_fields(&t, r, content_length);
	else put_status_fields(&t, r, content_length);
	return (size_t)(t.at - t.start);
}

struct slice response_in_memory(const struct response *r) {
	if (r->status != 200 || !r->representation || !r->representation->body || r->representation->gzipped)
		return (struct slice){0};
	return (struct slice){.at = r->representation->body, .length = r->representation->size};
}

int response_content(iob *batch, struct response *r) {
	char page[PAGE_ROOM];
	if (r->source.owner)
		return iob_addsource(batch, r->source.length, r->source.fill, r->source.release, r->source.owner,
							 r->source.memory);
	if (r->page.at) return iob_addbuf(batch, r->page.at, r->page.length, NULL, NULL);
	if (is_file(r) && r->ranges > 1) return add_multipart(batch, r);
	if (is_file(r) && r->status != 304)
		return add_file(batch, r->representation, r->ranges ? r->range[0].first : 0,
						r->ranges ? r->range[0].length : r->representation->size);
	response_drop(r);
	return r->status == 204 || r->status == 304 ? 0 : iob_addcopy(batch, page, status_page(r->status, page));
}

void response_drop(struct response *r) {
	if (r->representation) representation_release(r->representation);
	if (r->source.owner) r->source.release(r->source.owner);
	r->representation = NULL;
	r->source.owner = NULL;
}
