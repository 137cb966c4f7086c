/* http1.c - see http1.h. The fields of a file come ready from the cache; a few pieces are left to copy in a row. */
#include "gatling/http1.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/owfat.h"

enum {
	HEAD_ROOM = 1024,     /* bytes of a head but for its location and its parts */
	PART_HEAD_ROOM = 256, /* of the head of one part of multipart/byteranges */
	PAGE_ROOM = 256,      /* of the body of an error */
	BOUNDARY_BYTES = 12,
	BODY_COPIED = 2048 /* bytes of a body behind its head: one buffer to send(2) costs less than two to sendmsg(2) */
};

const struct slice http1_continue = SLICE("HTTP/1.1 100 Continue\r\n\r\n");

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
	STATUS(400, "Bad Request"),
	STATUS(403, "Forbidden"),
	STATUS(405, "Method Not Allowed"),
	STATUS(408, "Request Timeout"),
	STATUS(411, "Length Required"),
	STATUS(412, "Precondition Failed"),
	STATUS(413, "Content Too Large"),
	STATUS(414, "URI Too Long"),
	STATUS(416, "Range Not Satisfiable"),
	STATUS(417, "Expectation Failed"),
	STATUS(431, "Request Header Fields Too Large"),
	STATUS(500, "Internal Server Error"),
	STATUS(501, "Not Implemented"),
	STATUS(503, "Service Unavailable"),
	STATUS(505, "HTTP Version Not Supported"),
};

static struct slice status_line(int code) {
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
		if (statuses[i].code == code) return statuses[i].line;
	abort(); /* a status that nobody has named here */
}

/* A head being written; there is always room, see HEAD_ROOM, and for a body that is copied behind it. */
struct head {
	char *start, *at;
};

static void put(struct head *h, struct slice s) {
	memcpy(h->at, s.at, s.length);
	h->at += s.length;
}

static void put_number(struct head *h, uint64_t number) { h->at += fmt_ulonglong(h->at, number); }

static void put_content_length(struct head *h, uint64_t length) {
	put(h, SLICE("Content-Length: "));
	put_number(h, length);
	put(h, SLICE("\r\n"));
}

static void put_content_range(struct head *h, const struct range *range, uint64_t size) {
	put(h, SLICE("Content-Range: bytes "));
	put_number(h, range->first);
	put(h, SLICE("-"));
	put_number(h, range->first + range->length - 1);
	put(h, SLICE("/"));
	put_number(h, size);
	put(h, SLICE("\r\n"));
}

static struct slice from(struct slice s, size_t at) { return (struct slice){.at = s.at + at, .length = s.length - at}; }

static bool is_copied(const struct file *f, uint64_t length) { return f->body && length <= BODY_COPIED; }

/* Status line, Server, Date and Connection. */
static bool head_start(struct head *h, iob *batch, const struct response *r, struct slice server_date,
					   enum persistence persistence) {
	size_t body = r->file && is_copied(r->file, r->file->size) ? r->file->size : 0;
	h->start = h->at = iob_reserve(batch, HEAD_ROOM + r->location.length + body);
	if (!h->start) return false;
	put(h, status_line(r->status));
	put(h, server_date);
	if (persistence == PERSIST_NOT) put(h, SLICE("Connection: close\r\n"));
	if (persistence == PERSIST_SAID) put(h, SLICE("Connection: keep-alive\r\n"));
	return true;
}

static void head_end(const struct head *h, iob *batch) { iob_commit(batch, (size_t)(h->at - h->start)); }

/* Appends part of the file; takes one reference over. */
static int add_file(iob *batch, struct file *f, uint64_t first, uint64_t length) {
	if (is_copied(f, length)) {
		int result = iob_addcopy(batch, f->body + first, length);
		file_release(f);
		return result;
	}
	if (f->body) return iob_addbuf(batch, f->body + first, length, file_release, f);
	return iob_addfile(batch, f->fd, (off_t)first, length, file_release, f);
}

/* multipart/byteranges, RFC 9110, section 14.6. Never for HEAD: that has no ranges. */
static int write_multipart(iob *batch, struct head *head, struct response *r, uint64_t *body_length) {
	struct file *f = r->file;
	unsigned char random[BOUNDARY_BYTES];
	char boundary[2 * BOUNDARY_BYTES];
	char part_head[RANGES_MAX][PART_HEAD_ROOM];
	size_t part_head_length[RANGES_MAX];
	int result = 0;
	if (RAND_bytes(random, sizeof random) != 1) {
		file_release(f);
		return -1;
	}
	for (size_t i = 0; i < sizeof boundary; i++)
		boundary[i] = fmt_tohex((char)(i % 2 ? random[i / 2] & 15 : random[i / 2] >> 4));
	struct slice b = {.at = boundary, .length = sizeof boundary};

	*body_length = strlen("\r\n--") + b.length + strlen("--\r\n");
	for (int i = 0; i < r->ranges; i++) {
		struct head p = {.start = part_head[i], .at = part_head[i]};
		put(&p, SLICE("\r\n--"));
		put(&p, b);
		put(&p, SLICE("\r\nContent-Type: "));
		put(&p, (struct slice){.at = f->type, .length = strlen(f->type)});
		put(&p, SLICE("\r\n"));
		put_content_range(&p, &r->range[i], f->size);
		put(&p, SLICE("\r\n"));
		part_head_length[i] = (size_t)(p.at - p.start);
		*body_length += part_head_length[i] + r->range[i].length;
	}
	put_content_length(head, *body_length);
	put(head, SLICE("Content-Type: multipart/byteranges; boundary="));
	put(head, b);
	put(head, SLICE("\r\n"));
	put(head, from(f->fields, f->validators_at));
	put(head, SLICE("\r\n"));
	head_end(head, batch);

	for (int i = 0; i < r->ranges && result == 0; i++) {
		result = iob_addcopy(batch, part_head[i], part_head_length[i]);
		if (result) break;
		file_retain(f);
		result = add_file(batch, f, r->range[i].first, r->range[i].length);
	}
	file_release(f);
	if (result == 0) result = iob_addcopy(batch, "\r\n--", 4);
	if (result == 0) result = iob_addcopy(batch, b.at, b.length);
	return result ? result : iob_addcopy(batch, "--\r\n", 4);
}

/* 200, 206 and 304. */
static int write_file(iob *batch, struct head *head, struct response *r, bool head_only, uint64_t *body_length) {
	struct file *f = r->file;
	if (r->ranges > 1) return write_multipart(batch, head, r, body_length);
	struct range whole = {.first = 0, .length = f->size};
	const struct range *range = r->ranges ? &r->range[0] : &whole;
	*body_length = range->length;
	if (r->status == 304) {
		head_only = true;
		put(head, from(f->fields, f->validators_at));
	} else if (r->ranges) {
		put_content_length(head, range->length);
		put_content_range(head, range, f->size);
		put(head, from(f->fields, f->type_at));
	} else {
		put(head, f->fields);
	}
	put(head, SLICE("\r\n"));
	if (!head_only && !is_copied(f, f->size)) {
		head_end(head, batch);
		return add_file(batch, f, range->first, range->length);
	}
	if (head_only) *body_length = 0;
	else put(head, (struct slice){.at = f->body + range->first, .length = range->length});
	head_end(head, batch);
	file_release(f);
	return 0;
}

static int write_page(iob *batch, struct head *head, struct response *r, bool head_only, uint64_t *body_length) {
	put_content_length(head, r->page_length);
	put(head, SLICE("Content-Type: text/html; charset=utf-8\r\n\r\n"));
	head_end(head, batch);
	*body_length = head_only ? 0 : r->page_length;
	if (!head_only) return iob_addbuf(batch, r->page, r->page_length, free, r->page);
	free(r->page);
	return 0;
}

/* What has nothing to show but its status. */
static int write_status(iob *batch, struct head *head, struct response *r, bool head_only, uint64_t *body_length) {
	struct slice line = status_line(r->status);
	size_t version = strlen("HTTP/1.1 "), end = strlen("\r\n");
	struct slice words = {.at = line.at + version, .length = line.length - version - end};
	if (r->status == 204 || r->status == 405) {
		put(head, SLICE("Allow: "));
		put(head, answer_allow);
		put(head, SLICE("\r\n"));
	}
	if (r->file) { /* 416 */
		put(head, SLICE("Content-Range: bytes */"));
		put_number(head, r->file->size);
		put(head, SLICE("\r\n"));
		file_release(r->file);
	}
	if (r->location.length) {
		put(head, SLICE("Location: "));
		put(head, r->location);
		put(head, SLICE("\r\n"));
	}
	*body_length = 0;
	if (r->status != 204) {
		char page[PAGE_ROOM];
		int length = snprintf(page, sizeof page, "<!doctype html>\n<title>%.*s</title>\n<h1>%.*s</h1>\n",
							  (int)words.length, words.at, (int)words.length, words.at);
		put_content_length(head, (uint64_t)length);
		put(head, SLICE("Content-Type: text/html; charset=utf-8\r\n\r\n"));
		if (!head_only) {
			put(head, (struct slice){.at = page, .length = (size_t)length});
			*body_length = (uint64_t)length;
		}
	} else {
		put(head, SLICE("\r\n"));
	}
	head_end(head, batch);
	return 0;
}

int http1_write(iob *batch, struct response *r, struct slice server_date, bool head_only, enum persistence persistence,
				uint64_t *body_length) {
	struct head head;
	if (!head_start(&head, batch, r, server_date, persistence)) {
		if (r->file) file_release(r->file);
		free(r->page);
		return -1;
	}
	if (r->page) return write_page(batch, &head, r, head_only, body_length);
	if (r->file && r->status != 416) return write_file(batch, &head, r, head_only, body_length);
	return write_status(batch, &head, r, head_only, body_length);
}
