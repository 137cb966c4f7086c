/* outgoing.c - see outgoing.h. */
#include "gatling/upstream/outgoing.h"

#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/upstream/upstream_cgi.h"

_Static_assert((int)OUTGOING_PIECE_MAX <= (int)FCGI_CONTENT_MAX, "a piece has to fit into a record");

enum { SIZE_DIGITS = 5 };

struct slice outgoing_rest(const struct outgoing *o) {
	return (struct slice){.at = o->bytes + o->at, .length = o->length - o->at};
}

size_t outgoing_unsent(const struct outgoing *o) { return o->length - o->at; }
size_t outgoing_content(const struct outgoing *o) { return o->length - o->at - o->head_unsent; }

/* Makes room for `more` bytes after those to be sent. Returns false if memory runs out. */
static bool reserve(struct outgoing *o, size_t more) {
	size_t left = o->length - o->at, size = left + more;
	if (o->length + more <= o->size) return true;
	if (size > o->size && size < 2 * o->size) size = 2 * o->size; /* fewer copies */
	if (o->at && size <= o->size) {
		memmove(o->bytes, o->bytes + o->at, left);
	} else {
		char *bytes = malloc(size);
		if (!bytes) return false;
		if (left) memcpy(bytes, o->bytes + o->at, left);
		free(o->bytes);
		o->bytes = bytes;
		o->size = size;
	}
	if (o->joins) o->frame -= o->at;
	o->at = 0;
	o->length = left;
	return true;
}

static void add(struct outgoing *o, struct slice s) {
	if (s.length) memcpy(o->bytes + o->length, s.at, s.length);
	o->length += s.length;
}

bool outgoing_begin(struct outgoing *o, struct slice head) {
	if (!reserve(o, head.length)) return false;
	add(o, head);
	o->head_unsent = head.length;
	return true;
}

/* Adds content to the last frame, or as a new one if that would become too long. */
static void add_framed(struct outgoing *o, struct slice content) {
	char header[OUTGOING_OVERHEAD];
	const bool chunks = o->framing == FRAMED_CHUNKS;
	const size_t before = chunks ? SIZE_DIGITS + strlen("\r\n") : FCGI_HEADER, behind = chunks ? strlen("\r\n") : 0;
	size_t length = o->joins ? o->length - o->frame - before - behind : 0;
	if (length + content.length > OUTGOING_PIECE_MAX) length = 0;
	if (length) {
		o->length -= behind;
	} else {
		o->frame = o->length;
		o->length += before;
		o->joins = true;
	}
	length += content.length;
	if (chunks) sprintf(header, "%0*zx\r\n", SIZE_DIGITS, length);
	else fcgi_put_header(header, length);
	memcpy(o->bytes + o->frame, header, before);
	add(o, content);
	if (chunks) add(o, SLICE("\r\n"));
}

bool outgoing_put(struct outgoing *o, struct slice content, bool framed) {
	if (!reserve(o, content.length + OUTGOING_OVERHEAD)) return false;
	if (framed) add_framed(o, content);
	else add(o, content);
	return true;
}

bool outgoing_end(struct outgoing *o, struct slice trailers) {
	char header[FCGI_HEADER];
	if (o->framing == FRAMED_NOT) return true;
	if (!reserve(o, trailers.length + OUTGOING_OVERHEAD)) return false;
	o->joins = false;
	if (o->framing == FRAMED_CHUNKS) {
		add(o, SLICE("0\r\n"));
		add(o, trailers);
		add(o, SLICE("\r\n"));
		return true;
	}
	fcgi_put_header(header, 0);
	add(o, (struct slice){.at = header, .length = sizeof header});
	return true;
}

struct slice outgoing_sent(struct outgoing *o, size_t length) {
	o->at += length;
	o->head_unsent -= length < o->head_unsent ? length : o->head_unsent;
	o->joins &= o->frame >= o->at;
	return outgoing_rest(o);
}

void outgoing_rewind(struct outgoing *o) {
	o->at = 0;
	o->head_unsent = o->length;
}

void outgoing_forget(struct outgoing *o) {
	free(o->bytes);
	*o = (struct outgoing){.framing = o->framing};
}
