/* response.c - see response.h. */
#include "gatling/site/response.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "gatling/codec/gzip.h"
#include "gatling/base/slice.h"
#include "gatling/files/docroot.h"
#include "gatling/http/field_line.h"
#include "io/at_once.h"

enum {
	PART_HEAD_ROOM = 256, /* bytes of the head of a part of multipart/byteranges, without its media type */
	FILE_COPIED = 2048,   /* bytes; so few are read into the batch: sending them from the file takes four calls */
	BODY_COPIED = 2048    /* bytes in memory that are copied: send(2) with one buffer costs less than sendmsg(2) */
};

const struct slice response_allow = SLICE("GET, HEAD, OPTIONS");

static const struct status_line {
	int code;
	struct slice line, page;
} statuses[] = {
#define STATUS(code, reason)                                                                                           \
	{ code, SLICE("HTTP/1.1 " #code " " reason "\r\n"), SLICE(RESPONSE_PAGE(#code " " reason, #code " " reason, "")) }
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
	STATUS(418, "I'm a Teapot"),
	STATUS(429, "Too Many Requests"),
	STATUS(431, "Request Header Fields Too Large"),
	STATUS(451, "Unavailable For Legal Reasons"),
	STATUS(500, "Internal Server Error"),
	STATUS(501, "Not Implemented"),
	STATUS(502, "Bad Gateway"),
	STATUS(503, "Service Unavailable"),
	STATUS(504, "Gateway Timeout"),
	STATUS(505, "HTTP Version Not Supported"),
};

void response_status(struct response *r, int status) {
	r->status = status;
	r->job = NULL;
	r->upstream = NULL;
	r->representation = NULL;
	r->ranges = 0;
	r->source.owner = NULL;
	r->page_type = NULL;
	r->varies = r->offered = false;
	r->page = r->location = r->lines = r->hints = r->user = (struct slice){0};
	if (status == 429 || status == 503) r->lines = SLICE("Retry-After: 1\r\n"); /* seconds */
}

static const struct status_line *find_status(int code) {
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == code) return &statuses[i];
	abort(); /* it is missing in the table */
}

int response_status_of(int error) {
	if (docroot_error_is_temporary(error)) return 503;
	switch (error) {
	case EACCES:
	case EPERM:
	case EXDEV: return 403;
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL: /* a name that this file system cannot have */
	case EILSEQ: return 404;
	default: return 500;
	}
}

struct slice response_status_line(int code) {
	return find_status(code)->line;
}

static char *put_content_range(char *at, const struct range *range, uint64_t size) {
	at = text_copy(at, SLICE("Content-Range: bytes "));
	at = text_copy_number(at, range->first);
	*at++ = '-';
	at = text_copy_number(at, range->first + range->length - 1);
	*at++ = '/';
	at = text_copy_number(at, size);
	return text_copy(at, SLICE("\r\n"));
}

/* --- multipart/byteranges, RFC 9110, section 14.6 --- */

static bool make_boundary(struct response *r) {
	unsigned char random[BOUNDARY_LENGTH / 2];
	char *at = r->boundary;
	if (RAND_bytes(random, sizeof random) != 1) return false;
	for (size_t i = 0; i < sizeof random; i++) at = text_copy_hex(at, random[i]);
	return true;
}

static struct slice boundary(const struct response *r) {
	return (struct slice){.at = r->boundary, .length = BOUNDARY_LENGTH};
}

/* Writes the head of a part to out (PART_HEAD_ROOM bytes, and those of the media type). Returns its length. */
static size_t part_head(const struct response *r, int part, char *out) {
	char *at = TEXT_JOIN(out, SLICE("\r\n--"), boundary(r), SLICE("\r\n"));
	at = field_line_put(at, SLICE("Content-Type"), r->representation->type);
	at = put_content_range(at, &r->range[part], r->representation->size);
	return (size_t)(text_copy(at, SLICE("\r\n")) - out);
}

static uint64_t multipart_length(const struct response *r) {
	char head[PART_HEAD_ROOM + HEADER_OCTETS_MAX];
	uint64_t length = strlen("\r\n--") + BOUNDARY_LENGTH + strlen("--\r\n");
	for (int i = 0; i < r->ranges; i++) length += part_head(r, i, head) + r->range[i].length;
	return length;
}

/* Appends a small part of a file, if it is in memory. Returns whether it is. */
static bool copy_file(iob *batch, struct representation *f, uint64_t first, uint64_t length) {
	char *room = length <= FILE_COPIED && !f->remote ? iob_reserve(batch, (size_t)length) : NULL;
	if (!room) return false;
	const ssize_t n = io_pread_at_once(f->fd, room, (size_t)length, (off_t)first);
	struct stat st;
	const bool whole = n == (ssize_t)length && fstat(f->fd, &st) == 0 && representation_unwritten(f, &st);
	iob_commit(batch, whole ? (size_t)length : 0);
	if (whole) representation_release(f);
	return whole;
}

/* Appends part of a representation, and takes a reference over. */
static int add_file(iob *batch, struct representation *f, uint64_t first, uint64_t length) {
	if (f->gzipped) {
		struct gzip_bytes stored = representation_stored(f);
		struct gzip_reader *reader =
			gzip_reader_new(&stored, f->fd == -1 ? NULL : representation_unwritten, representation_release, f);
		return reader ? iob_addsource(batch, length, gzip_reader_fill, gzip_reader_free, reader, GZIP_READER) : -1;
	}
	if (f->body) return iob_addbuf(batch, f->body + first, length, representation_release, f);
	if (copy_file(batch, f, first, length)) return 0;
	const struct iob_file file = {.fd = f->fd,
								  .map = f->map,
								  .unchanged = representation_unwritten,
								  .copied = file_version_recent(&f->version),
								  .readers = f->remote ? remote_file_readers(f->remote) : NULL};
	return iob_addfile(batch, file, (off_t)first, length, representation_release, f);
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

/* Returns the page of a response without other content. */
static struct slice page_of(const struct response *r) { return r->page.at ? r->page : find_status(r->status)->page; }

/* --- fields --- */

/* Returns the part of the fields of the representation from one place to another. */
static struct slice part_of(const struct representation *f, size_t from, size_t to) {
	return slice_rest(slice_first(f->fields, to), from);
}

/* Returns the fields of the representation that all statuses have but 416. */
static struct slice always_of(const struct response *r) {
	const struct representation *f = r->representation;
	return r->offered && f->offered.at ? f->offered : slice_rest(f->fields, f->always_at);
}

/* Appends the fields of a response with a representation, other than 416. */
static char *put_representation_fields(char *at, const struct response *r, uint64_t *length) {
	const struct representation *f = r->representation;
	*length = r->ranges == 1 ? r->range[0].length : f->size;
	if (r->status == 304) {
		*length = 0; /* and of the validators the best alone (RFC 9110, section 15.4.5) */
		if (f->validators.etag.at) at = field_line_put(at, SLICE("ETag"), f->validators.etag);
		else at = text_copy(at, part_of(f, f->validators_at, f->always_at));
	} else if (r->ranges > 1) {
		*length = multipart_length(r);
		at = field_line_put_length(at, *length);
		if (f->encoding.at) at = field_line_put(at, SLICE("Content-Encoding"), f->encoding);
		at = TEXT_JOIN(at, SLICE("Content-Type: multipart/byteranges; boundary="), boundary(r),
					   SLICE("\r\n" NOSNIFF_LINE), part_of(f, f->validators_at, f->always_at));
	} else if (r->ranges) {
		at = field_line_put_length(at, *length);
		at = put_content_range(at, &r->range[0], f->size);
		at = text_copy(at, part_of(f, f->type_at, f->always_at));
	} else {
		/* an error has no validators, which would be taken for those of the requested path */
		at = text_copy(at, slice_first(f->fields, r->status == 200 ? f->always_at : f->validators_at));
	}
	return TEXT_JOIN(at, always_of(r), r->lines);
}

static char *put_status_fields(char *at, const struct response *r, uint64_t *length) {
	const struct generated_content *source = r->source.owner ? &r->source : NULL;
	if (r->status == 204 || r->status == 405) at = field_line_put(at, SLICE("Allow"), response_allow);
	if (r->representation) { /* 416 */
		at = text_copy_number(text_copy(at, SLICE("Content-Range: bytes */")), r->representation->size);
		at = text_copy(at, SLICE("\r\n"));
	}
	if (r->location.length) at = field_line_put(at, SLICE("Location"), r->location);
	*length = 0;
	at = text_copy(at, r->lines);
	if (r->varies) at = text_copy(at, SLICE("Vary: Accept-Encoding\r\n"));
	if (r->status == 204 || r->status == 304) return at;
	*length = source ? source->length : page_of(r).length;
	at = field_line_put_length(at, *length);
	const char *type = source ? source->type : r->page_type ? r->page_type : "text/html; charset=utf-8";
	at = text_copy(field_line_put(at, SLICE("Content-Type"), slice_of(type)), SLICE(NOSNIFF_LINE));
	return source && source->coding == CODING_GZIP ? text_copy(at, SLICE("Content-Encoding: gzip\r\n")) : at;
}

size_t response_fields_room(const struct response *r) {
	const struct representation *f = r->representation;
	const size_t fields = f ? f->fields.length + f->offered.length : 0;
	return RESPONSE_STATUS_FIELDS_MAX + r->location.length + r->lines.length + fields;
}

static bool sends_representation(const struct response *r) { return r->representation && r->status != 416; }

size_t response_fields(struct response *r, char *out, uint64_t *content_length) {
	if (r->ranges > 1 && !make_boundary(r)) return 0;
	const char *end = sends_representation(r) ? put_representation_fields(out, r, content_length)
											  : put_status_fields(out, r, content_length);
	return (size_t)(end - out);
}

bool response_has_ready_block(const struct response *r) {
	return r->status == 200 && r->representation && !r->lines.length;
}

struct slice response_in_memory(const struct response *r) {
	if (r->status != 200 || !r->representation || !r->representation->body || r->representation->gzipped)
		return (struct slice){0};
	return (struct slice){.at = r->representation->body, .length = r->representation->size};
}

int response_content(iob *batch, struct response *r) {
	if (r->source.owner)
		return iob_addsource(batch, r->source.length, r->source.fill, r->source.release, r->source.owner,
							 r->source.memory);
	if (sends_representation(r) && r->ranges > 1) return add_multipart(batch, r);
	if (sends_representation(r) && r->status != 304)
		return add_file(batch, r->representation, r->ranges ? r->range[0].first : 0,
						r->ranges ? r->range[0].length : r->representation->size);
	response_drop(r);
	if (r->status == 204 || r->status == 304) return 0;
	return iob_addcopy(batch, page_of(r).at, page_of(r).length);
}

void response_drop(struct response *r) {
	if (r->representation) representation_release(r->representation);
	if (r->source.owner) r->source.release(r->source.owner);
	r->representation = NULL;
	r->source.owner = NULL;
}

bool response_write(iob *batch, struct response *r, struct response_lines lines, bool head_only, uint64_t *length) {
	const struct slice status = response_status_line(r->status);
	struct slice copied = head_only ? (struct slice){0} : response_in_memory(r);
	if (copied.length > BODY_COPIED) copied.length = 0;
	const size_t room = status.length + lines.common.length + lines.more.length + response_fields_room(r);
	char *const start = iob_reserve(batch, room + strlen("\r\n") + copied.length);
	char *at = start ? TEXT_JOIN(start, status, lines.common, lines.more) : NULL;
	const size_t fields = start ? response_fields(r, at, length) : 0;
	if (!fields) {
		response_drop(r);
		return false;
	}
	at = TEXT_JOIN(at + fields, SLICE("\r\n"), copied);
	iob_commit(batch, (size_t)(at - start));
	if (!head_only && !copied.length) return response_content(batch, r) == 0;
	if (head_only) *length = 0;
	response_drop(r);
	return true;
}
