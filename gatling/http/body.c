/* body.c - see body.h. It has a state for each place in the grammar of chunked-body, and takes one byte at a time
 * except in data. */
#include "gatling/http/body.h"

#include "gatling/base/owfat.h"
#include "gatling/http/chars.h"

enum body_state {
	ENDED,
	LENGTH, /* inside a body of known length */
	SIZE,   /* in the digits of a chunk size */
	/* chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) */
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

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Takes a byte after a size, a name or a value: a blank, or the start of an extension or a value, or the end of the
 * line. blank: the state after a blank. */
static int extension_next(struct body *b, char c, enum body_state blank) {
	if (c == ';') b->state = NAME_START;
	else if (c == '=' && blank == NAME_BLANK) b->state = VALUE_START;
	else if (is_blank(c)) b->state = (uint8_t)blank;
	else if (c == '\r' && b->state != BLANK && b->state != NAME_BLANK) b->state = SIZE_LF;
	else return -400;
	return 0;
}

/* Takes a byte of the extensions of a chunk (RFC 9112, section 7.1.1), which are checked and dropped. */
static int extension(struct body *b, char c) {
	enum body_state state = (enum body_state)b->state;
	bool token = char_is(c, CHAR_TOKEN);
	if (c != '\r' && ++b->line > CHUNK_LINE_MAX) return -400;
	switch (state) {
	case NAME_START:
		if (token) b->state = NAME;
		return token || is_blank(c) ? 0 : -400;
	case NAME: return token ? 0 : extension_next(b, c, NAME_BLANK);
	case NAME_BLANK: return extension_next(b, c, NAME_BLANK);
	case VALUE_START:
		if (token) b->state = VALUE;
		else if (c == '"') b->state = QUOTED;
		return token || c == '"' || is_blank(c) ? 0 : -400;
	case VALUE: return token ? 0 : extension_next(b, c, BLANK);
	case QUOTED:
		if (c == '"') b->state = QUOTED_END;
		else if (c == '\\') b->state = ESCAPED;
		return char_is(c, CHAR_TEXT) ? 0 : -400;
	case ESCAPED: b->state = QUOTED; return char_is(c, CHAR_TEXT) ? 0 : -400;
	default: return extension_next(b, c, BLANK);
	}
}

static int size_digit(struct body *b, char c) {
	int value = scan_fromhex((unsigned char)c);
	if (value >= 0) {
		if (b->left > BODY_MAX) return -413; /* and it never overflows */
		b->left = b->left * 16 + (uint32_t)value;
		b->digits = 1;
		return 0;
	}
	return b->digits ? extension_next(b, c, BLANK) : -400;
}

static int size_complete(struct body *b) {
	b->state = b->left ? DATA : TRAILER_START;
	b->total += b->left;
	b->line = 0;
	b->digits = 0;
	return b->total > BODY_MAX ? -413 : 0;
}

static int expect(struct body *b, char c, char wanted, enum body_state next) {
	if (c != wanted) return -400;
	b->state = (uint8_t)next;
	return 0;
}

/* Takes a byte that is not data. */
static int step(struct body *b, char c) {
	switch ((enum body_state)b->state) {
	case SIZE: return c != '\r' && ++b->line > CHUNK_LINE_MAX ? -400 : size_digit(b, c);
	case BLANK:
	case NAME_START:
	case NAME:
	case NAME_BLANK:
	case VALUE_START:
	case VALUE:
	case QUOTED:
	case ESCAPED:
	case QUOTED_END: return extension(b, c);
	case SIZE_LF: return c == '\n' ? size_complete(b) : -400;
	case DATA_CR: return expect(b, c, '\r', DATA_LF);
	case DATA_LF: return expect(b, c, '\n', SIZE);
	case TRAILER_START:
		if (c == '\r') return expect(b, c, '\r', END_LF);
		b->state = TRAILER_NAME;
		return char_is(c, CHAR_TOKEN) && ++b->line <= TRAILER_MAX ? 0 : -400;
	case TRAILER_NAME:
		if (c == ':') b->state = TRAILER_VALUE;
		else if (!char_is(c, CHAR_TOKEN) || ++b->line > TRAILER_MAX) return -400;
		return 0;
	case TRAILER_VALUE:
		if (c == '\r') b->state = TRAILER_LF;
		else if (!char_is(c, CHAR_TEXT) || ++b->line > TRAILER_MAX) return -400;
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
