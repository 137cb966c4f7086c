/* response.c - see response.h. RFC 9112, sections 4, 6 and 7. */
#include "bench/client/response.h"

#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS = 18 };

enum place {
	AT_HEAD,
	AT_CONTENT,
	AT_CHUNK_SIZE,
	AT_CHUNK_EXTENSION, /* up to the end of the line with the size */
	AT_CHUNK,
	AT_CHUNK_END, /* in the CRLF behind the chunk */
	AT_TRAILER,   /* at the start of a line */
	AT_TRAILER_LINE,
	AT_COMPLETE
};

static bool is_named(const char *line, size_t length, const char *name) {
	size_t n = strlen(name);
	return length > n && line[n] == ':' && strncasecmp(line, name, n) == 0;
}

/* Returns whether a field line contains a token. */
static bool contains(const char *line, const char *end, const char *token) {
	size_t n = strlen(token);
	for (; line + n <= end; line++)
		if (strncasecmp(line, token, n) == 0) return true;
	return false;
}

/* Parses a number of at most LENGTH_DIGITS digits. */
static bool parse_length(uint64_t *n, const char *at, const char *end) {
	while (at < end && (*at == ' ' || *at == '\t')) at++;
	while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) end--;
	*n = 0;
	if (at == end || end - at > LENGTH_DIGITS) return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9') return false;
		*n = *n * 10 + (uint64_t)(*at - '0');
	}
	return true;
}

/* Parses a field line. Returns false if it is malformed. */
static bool parse_field(struct response *r, const char *line, const char *end, bool *has_length, bool *chunked) {
	size_t length = (size_t)(end - line);
	switch (*line | 0x20) {
	case 'c':
		if (is_named(line, length, "content-length")) {
			const uint64_t before = r->left;
			if (!parse_length(&r->left, line + sizeof "content-length", end)) return false;
			if (*has_length && r->left != before) return false;
			*has_length = true;
		} else if (is_named(line, length, "connection")) {
			if (contains(line, end, "close")) r->close = true;
			else if (contains(line, end, "keep-alive")) r->close = false;
		}
		break;
	case 't':
		if (is_named(line, length, "transfer-encoding")) *chunked = contains(line, end, "chunked");
		break;
	}
	return true;
}

int response_head(struct response *r, const char *data, size_t length, bool bodiless) {
	static const char version[] = "HTTP/1.";
	size_t known = length < sizeof version - 1 ? length : sizeof version - 1;
	if (memcmp(data, version, known) != 0) return -1;
	const char *end = memmem(data, length, "\r\n\r\n", 4);
	if (memmem(data, end ? (size_t)(end - data) : length, "\n\n", 2)) return -1; /* lines end in CRLF */
	if (!end) return length >= RESPONSE_HEAD_MAX ? -1 : 0;
	if (end - data < 12 || end - data > RESPONSE_HEAD_MAX || data[8] != ' ') return -1;
	if (data[12] != ' ' && data[12] != '\r') return -1;
	for (int i = 9; i < 12; i++)
		if (data[i] < '0' || data[i] > '9') return -1;
	*r = (struct response){.close = data[7] == '0'};
	int status = (data[9] - '0') * 100 + (data[10] - '0') * 10 + (data[11] - '0');
	if (status < 100) return -1;
	int head = (int)(end + 4 - data);
	if (status < 200 && status != 101) return head;
	bool has_length = false, chunked = false;
	const char *line_end = memchr(data, '\n', (size_t)(end + 2 - data));
	while (line_end < end) {
		const char *line = line_end + 1;
		line_end = memchr(line, '\n', (size_t)(end + 2 - line));
		if (!parse_field(r, line, line_end, &has_length, &chunked)) return -1;
	}
	r->status = (uint16_t)status;
	if (bodiless || status == 204 || status == 304) r->state = AT_COMPLETE;
	else if (chunked) r->state = AT_CHUNK_SIZE;
	else if (has_length) r->state = r->left ? AT_CONTENT : AT_COMPLETE;
	else r->state = AT_CONTENT;
	r->until_close = r->state == AT_CONTENT && !has_length;
	if (r->state != AT_CONTENT) r->left = 0;
	return head;
}

static int hex(char c) {
	if (c >= '0' && c <= '9') return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses a byte that is not content of a chunk. Returns false if it is malformed. */
static bool step(struct response *r, char c) {
	switch ((enum place)r->state) {
	case AT_CHUNK_SIZE: {
		int digit = hex(c);
		if (digit >= 0 && r->left < UINT64_MAX / 32) {
			r->left = r->left * 16 + (uint64_t)digit;
			r->has_size = true;
			return true;
		}
		r->state = AT_CHUNK_EXTENSION;
		return r->has_size && (c == '\r' || c == ';' || c == ' ' || c == '\t');
	}
	case AT_CHUNK_EXTENSION:
		if (c == '\n') r->state = r->left ? AT_CHUNK : AT_TRAILER;
		r->has_size = false;
		return true;
	case AT_CHUNK_END:
		if (c == '\n') r->state = AT_CHUNK_SIZE;
		return c == '\r' || c == '\n';
	case AT_TRAILER:
		if (c == '\n') r->state = AT_COMPLETE;
		else if (c != '\r') r->state = AT_TRAILER_LINE;
		return true;
	case AT_TRAILER_LINE:
		if (c == '\n') r->state = AT_TRAILER;
		return true;
	default: return false;
	}
}

void response_compare(struct response *r, const char *data, size_t length, const struct response_expected *expected) {
	if (expected->at && !r->differs)
		r->differs = r->seen + length > expected->length || memcmp(expected->at + r->seen, data, length) != 0;
	r->seen += length;
}

int response_content(struct response *r, const char *data, size_t length, const struct response_expected *expected) {
	size_t at = 0;
	if (r->until_close) {
		response_compare(r, data, length, expected);
		return (int)length;
	}
	while (at < length && r->state != AT_COMPLETE) {
		if (r->state != AT_CONTENT && r->state != AT_CHUNK) {
			if (!step(r, data[at++])) return -1;
			continue;
		}
		size_t n = length - at < r->left ? length - at : (size_t)r->left;
		response_compare(r, data + at, n, expected);
		at += n;
		r->left -= n;
		if (!r->left) r->state = r->state == AT_CONTENT ? AT_COMPLETE : AT_CHUNK_END;
	}
	return (int)at;
}

bool response_complete(const struct response *r) { return r->state == AT_COMPLETE; }
