/* body.c - see body.h. Chunked bodies are parsed one byte at a time, by a table with the grammar of everything but
 * chunk data. */
#include "gatling/http/body.h"

#include "gatling/base/owfat.h"
#include "gatling/http/chars.h"

enum body_state {
	ENDED,
	LENGTH,     /* inside a body of known length */
	SIZE_START, /* at the first digit of a chunk size */
	SIZE,       /* in its digits */
	BLANK,      /* in blanks after the size or a value: a ';' must follow */
	NAME_START, /* after a ';' */
	NAME,
	NAME_BLANK, /* in blanks after a name: a '=' or ';' must follow */
	VALUE_START,
	VALUE,  /* in a token */
	QUOTED, /* in a quoted-string */
	ESCAPED,
	QUOTED_END,
	SIZE_LF, /* at the LF of a size line */
	DATA,    /* inside a chunk */
	DATA_CR, /* at the CR after a chunk */
	DATA_LF,
	TRAILER_START, /* at the start of a trailer line */
	TRAILER_NAME,  /* in its name */
	TRAILER_VALUE, /* after its colon */
	TRAILER_LF,
	END_LF, /* at the very last LF */
	STATES
};

/* Entries of the table that stand for a class of bytes; ' ' stands for SP and HTAB. */
enum { TOKEN = 1, TEXT = 2 };

/* For each state, the bytes that may come and the state that follows (RFC 9112, section 7.1); step() handles the digits
 * of a size. A chunk extension is *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ); it is dropped. */
static const struct edge {
	char byte; /* 0: the end of the list */
	uint8_t next;
} edges[STATES][6] = {
	[SIZE] = {{';', NAME_START}, {' ', BLANK}, {'\r', SIZE_LF}},
	[BLANK] = {{';', NAME_START}, {' ', BLANK}},
	[NAME_START] = {{TOKEN, NAME}, {' ', NAME_START}},
	[NAME] = {{TOKEN, NAME}, {'=', VALUE_START}, {';', NAME_START}, {' ', NAME_BLANK}, {'\r', SIZE_LF}},
	[NAME_BLANK] = {{'=', VALUE_START}, {';', NAME_START}, {' ', NAME_BLANK}},
	[VALUE_START] = {{TOKEN, VALUE}, {'"', QUOTED}, {' ', VALUE_START}},
	[VALUE] = {{TOKEN, VALUE}, {';', NAME_START}, {' ', BLANK}, {'\r', SIZE_LF}},
	[QUOTED] = {{'"', QUOTED_END}, {'\\', ESCAPED}, {TEXT, QUOTED}},
	[ESCAPED] = {{TEXT, QUOTED}},
	[QUOTED_END] = {{';', NAME_START}, {' ', BLANK}, {'\r', SIZE_LF}},
	[SIZE_LF] = {{'\n', DATA}},
	[DATA_CR] = {{'\r', DATA_LF}},
	[DATA_LF] = {{'\n', SIZE_START}},
	[TRAILER_START] = {{'\r', END_LF}, {TOKEN, TRAILER_NAME}},
	[TRAILER_NAME] = {{':', TRAILER_VALUE}, {TOKEN, TRAILER_NAME}},
	[TRAILER_VALUE] = {{'\r', TRAILER_LF}, {TEXT, TRAILER_VALUE}},
	[TRAILER_LF] = {{'\n', TRAILER_START}},
	[END_LF] = {{'\n', ENDED}},
};

void body_start_any(struct body *b, enum body_framing framing, uint64_t content_length) {
	*b = (struct body){.allowed = BODY_UNLIMITED};
	if (framing == BODY_LENGTH && content_length) {
		b->state = LENGTH;
		b->left = content_length;
	} else if (framing == BODY_CHUNKED) {
		b->state = SIZE_START;
	}
}

void body_start(struct body *b, const struct request *r) {
	body_start_any(b, r->framing, r->content_length);
	b->allowed = BODY_MAX;
}

bool body_pending(const struct body *b) { return b->state != ENDED; }

uint64_t body_rest(const struct body *b) { return b->state == LENGTH ? b->left : 0; }

void body_take(struct body *b, uint64_t length) {
	b->left -= length;
	if (b->left == 0) b->state = b->state == LENGTH ? ENDED : DATA_CR;
}

bool body_in_trailers(const struct body *b) { return b->state >= TRAILER_START; }

static bool matches(char c, char byte) {
	if (byte == TOKEN) return char_is(c, CHAR_TOKEN);
	if (byte == TEXT) return char_is(c, CHAR_TEXT);
	return c == byte || (c == '\t' && byte == ' ');
}

static int size_complete(struct body *b) {
	b->state = b->left ? DATA : TRAILER_START;
	b->line = 0;
	if (b->allowed == BODY_UNLIMITED) return 0;
	if (b->left > b->allowed) return -413;
	b->allowed -= (uint32_t)b->left;
	return 0;
}

/* Parses a byte that is not data. Returns 0, or the negative status to answer. */
static int step(struct body *b, char c) {
	int digit = b->state == SIZE_START || b->state == SIZE ? scan_fromhex((unsigned char)c) : -1;
	bool counts = body_in_trailers(b) || (c != '\r' && c != '\n');
	if (counts && ++b->line > (body_in_trailers(b) ? TRAILER_MAX : CHUNK_LINE_MAX)) return -400;
	if (digit >= 0) {
		if (b->left > (b->allowed == BODY_UNLIMITED ? BODY_LENGTH_MAX / 16 : BODY_MAX))
			return -413; /* so that it cannot overflow */
		b->left = b->left * 16 + (uint32_t)digit;
		b->state = SIZE;
		return 0;
	}
	const struct edge *e = edges[b->state];
	while (e->byte && !matches(c, e->byte)) e++;
	if (!e->byte) return -400;
	b->state = e->next;
	return b->state == DATA ? size_complete(b) : 0;
}

int body_read(struct body *b, const char *buffer, size_t length, struct slice *content) {
	size_t at = 0;
	const bool in_trailers = body_in_trailers(b);
	*content = (struct slice){.at = buffer};
	while (at < length && b->state != ENDED && !content->length && body_in_trailers(b) == in_trailers) {
		if (b->state != LENGTH && b->state != DATA) {
			int error = step(b, buffer[at++]);
			if (error) return error;
			continue;
		}
		*content = (struct slice){.at = buffer + at, .length = length - at < b->left ? length - at : (size_t)b->left};
		at += content->length;
		body_take(b, content->length);
	}
	return (int)at;
}

int body_skip(struct body *b, const char *buffer, size_t length) {
	size_t at = 0;
	struct slice content;
	while (at < length && b->state != ENDED) {
		int n = body_read(b, buffer + at, length - at, &content);
		if (n < 0) return n;
		at += (size_t)n;
	}
	return (int)at;
}
