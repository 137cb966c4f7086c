/* body.c - see body.h. One state a place in the grammar of chunked-body, fed a byte at a time but for the data. */
#include "gatling/body.h"

#include "gatling/octet.h"
#include "gatling/owfat.h"

enum state {
	ENDED,
	LENGTH,    /* inside a body of known length */
	SIZE,      /* in the digits of a chunk size */
	BLANK,     /* in blanks behind them */
	EXTENSION, /* behind a ';' */
	SIZE_LF,   /* at the LF of a size line */
	DATA,      /* inside a chunk */
	DATA_CR,   /* at the CR behind a chunk */
	DATA_LF,
	TRAILER_START, /* at the start of a trailer line */
	TRAILER_NAME,  /* in its name */
	TRAILER_VALUE, /* behind its colon */
	TRAILER_LF,
	END_LF /* at the very last LF */
};

void body_start(struct body *b, const struct request *r) {
	*b = (struct body){0};
	if (r->framing == BODY_LENGTH) {
		b->state = LENGTH;
		b->left = (uint32_t)r->content_length;
	} else if (r->framing == BODY_CHUNKED) {
		b->state = SIZE;
	}
}

/* chunk-ext begins with a ';' behind optional blanks (RFC 9112, section 7.1.1). */
static int extension_start(struct body *b, char c) {
	b->state = c == ';' ? EXTENSION : BLANK;
	return c == ';' || c == ' ' || c == '\t' ? 0 : -400;
}

static int size_digit(struct body *b, char c) {
	int value = scan_fromhex((unsigned char)c);
	if (value >= 0) {
		if (b->left > BODY_MAX) return -413; /* and never an overflow */
		b->left = b->left * 16 + (uint32_t)value;
		b->digits = 1;
		return 0;
	}
	if (!b->digits) return -400;
	if (c == '\r') b->state = SIZE_LF;
	else return extension_start(b, c);
	return 0;
}

static int size_complete(struct body *b) {
	b->state = b->left ? DATA : TRAILER_START;
	b->total += b->left;
	b->line = 0;
	b->digits = 0;
	return b->total > BODY_MAX ? -413 : 0;
}

static int expect(struct body *b, char c, char wanted, enum state next) {
	if (c != wanted) return -400;
	b->state = (uint8_t)next;
	return 0;
}

/* A byte that is not data. */
static int step(struct body *b, char c) {
	switch ((enum state)b->state) {
	case SIZE: return c != '\r' && ++b->line > CHUNK_LINE_MAX ? -400 : size_digit(b, c);
	case BLANK: return ++b->line > CHUNK_LINE_MAX ? -400 : extension_start(b, c);
	case EXTENSION:
		if (c == '\r') b->state = SIZE_LF;
		else if (!octet_is(c, OCTET_TEXT) || ++b->line > CHUNK_LINE_MAX) return -400;
		return 0;
	case SIZE_LF: return c == '\n' ? size_complete(b) : -400;
	case DATA_CR: return expect(b, c, '\r', DATA_LF);
	case DATA_LF: return expect(b, c, '\n', SIZE);
	case TRAILER_START:
		if (c == '\r') return expect(b, c, '\r', END_LF);
		b->state = TRAILER_NAME;
		return octet_is(c, OCTET_TOKEN) && ++b->line <= TRAILER_MAX ? 0 : -400;
	case TRAILER_NAME:
		if (c == ':') b->state = TRAILER_VALUE;
		else if (!octet_is(c, OCTET_TOKEN) || ++b->line > TRAILER_MAX) return -400;
		return 0;
	case TRAILER_VALUE:
		if (c == '\r') b->state = TRAILER_LF;
		else if (!octet_is(c, OCTET_TEXT) || ++b->line > TRAILER_MAX) return -400;
		return 0;
	case TRAILER_LF: return expect(b, c, '\n', TRAILER_START);
	case END_LF: return expect(b, c, '\n', ENDED);
	case ENDED:
	case LENGTH:
	case DATA: break;
	}
	return 0;
}

int body_skip(struct body *b, const char *buffer, size_t length) {
	size_t at = 0;
	while (at < length && b->state != ENDED) {
		if (b->state != LENGTH && b->state != DATA) {
			int error = step(b, buffer[at++]);
			if (error) return error;
			continue;
		}
		size_t n = length - at < b->left ? length - at : b->left;
		at += n;
		b->left -= (uint32_t)n;
		if (b->left == 0) b->state = b->state == LENGTH ? ENDED : DATA_CR;
	}
	return (int)at;
}
