/* http3_head.c - see http3_head.h. Of the static table (RFC 9204, appendix A) only the entries of :status and
 * content-length matter; all other fields are skipped. */
#include "bench/client/http3_head.h"

#include <stdbool.h>
#include <string.h>

enum {
	STATIC_ENTRIES = 99,
	STATIC_CONTENT_LENGTH = 4, /* with the value 0 */
	STATIC_STATUS = 24,        /* the first of several */
	DIGITS = 18,               /* of a number, at most */
	INTEGER_BITS = 32          /* no integer has more */
};

/* What is left of a section. */
struct rest {
	const uint8_t *at, *end;
};

/* A string: its bytes, and whether these are in the code of Huffman. */
struct string {
	const uint8_t *at;
	size_t length;
	bool huffman;
};

/* Parses an integer with a prefix of so many bits (RFC 7541, section 5.1). */
static bool take_integer(struct rest *r, unsigned prefix, uint64_t *value) {
	const uint8_t most = (uint8_t)((1U << prefix) - 1);
	if (r->at == r->end) return false;
	*value = *r->at++ & most;
	if (*value < most) return true;
	for (unsigned shift = 0; r->at < r->end && shift < INTEGER_BITS; shift += 7) {
		*value += (uint64_t)(*r->at & 0x7f) << shift;
		if (!(*r->at++ & 0x80)) return true;
	}
	return false;
}

/* Parses a string whose length has a prefix of so many bits, behind the bit that says how it is coded. */
static bool take_string(struct rest *r, unsigned prefix, struct string *s) {
	uint64_t length;
	s->huffman = r->at < r->end && *r->at >> prefix & 1;
	if (!take_integer(r, prefix, &length) || length > (size_t)(r->end - r->at)) return false;
	s->at = r->at;
	s->length = (size_t)length;
	r->at += length;
	return true;
}

/* Decodes digits (RFC 7541, appendix B): 0 to 2 have codes of five bits, from 00000 on, and 3 to 9 of six, from 011001
 * on. Ones fill the last byte. Returns how many there are, or -1 if there is something else, or more than DIGITS. */
static int decode_digits(const struct string *s, char *digits) {
	unsigned bits = 0, have = 0;
	int count = 0;
	for (size_t i = 0; i < s->length || have >= 5;) {
		if (i < s->length && have < 6) {
			bits = (bits << 8 | s->at[i++]) & 0xffff;
			have += 8;
		}
		const unsigned five = bits >> (have - 5) & 0x1f, six = have >= 6 ? bits >> (have - 6) & 0x3f : 0;
		if (count == DIGITS) return -1;
		if (five < 3) {
			digits[count++] = (char)('0' + five);
			have -= 5;
		} else if (six >= 0x19 && six < 0x20) {
			digits[count++] = (char)('3' + six - 0x19);
			have -= 6;
		} else {
			return have < 8 && i == s->length && (bits & ((1U << have) - 1)) == (1U << have) - 1 ? count : -1;
		}
	}
	return (bits & ((1U << have) - 1)) == (1U << have) - 1 ? count : -1;
}

/* Parses a number. Returns -1 if it is none. */
static int64_t number_of(const struct string *s) {
	char digits[DIGITS];
	const char *at = (const char *)s->at;
	int count = s->length <= DIGITS ? (int)s->length : -1;
	int64_t number = 0;
	if (s->huffman) {
		count = decode_digits(s, digits);
		at = digits;
	}
	for (int i = 0; i < count; i++) {
		if (at[i] < '0' || at[i] > '9') return -1;
		number = number * 10 + at[i] - '0';
	}
	return count > 0 ? number : -1;
}

/* Returns the status of an entry of the static table; 0: it is of another field. */
static unsigned status_of(uint64_t entry) {
	static const uint16_t first[] = {103, 200, 304, 404, 503}, second[] = {100, 204, 206, 302, 400, 403, 421, 425, 500};
	if (entry >= STATIC_STATUS && entry < STATIC_STATUS + sizeof first / sizeof *first)
		return first[entry - STATIC_STATUS];
	if (entry >= 63 && entry < 63 + sizeof second / sizeof *second) return second[entry - 63];
	return 0;
}

/* Returns an entry of the static table with that name, if it is one that matters; otherwise one that does not. */
static uint64_t entry_of(const struct string *name) {
	static const struct {
		bool huffman;
		size_t length;
		const char *at;
		uint64_t entry;
	} names[] = {{false, 7, ":status", STATIC_STATUS},
				 {true, 5, "\xb8\x84\x8d\x36\xa3", STATIC_STATUS},
				 {false, 14, "content-length", STATIC_CONTENT_LENGTH},
				 {true, 10, "\x21\xea\x49\x6a\x4a\xd4\x16\xa9\x93\x3f", STATIC_CONTENT_LENGTH}};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (name->huffman == names[i].huffman && name->length == names[i].length &&
			memcmp(name->at, names[i].at, name->length) == 0)
			return names[i].entry;
	return 0;
}

/* Parses a name. Sets *entry to an entry that stands for it. */
static bool take_name(struct rest *r, uint64_t *entry) {
	struct string name;
	if (!take_string(r, 3, &name)) return false;
	*entry = entry_of(&name);
	return true;
}

/* Notes a field with the name of an entry. value NULL: that of the entry, too. Returns false if it is wrong. */
static bool note(struct http3_head *head, uint64_t entry, const struct string *value) {
	if (entry == STATIC_CONTENT_LENGTH) return (head->content_length = value ? number_of(value) : 0) != -1;
	if (!status_of(entry)) return true;
	const int64_t status = value ? number_of(value) : status_of(entry);
	if (status < 100 || status > 999 || head->status) return false;
	head->status = (unsigned)status;
	return true;
}

/* Parses a field line (section 4.5.2 to 4.5.6). Returns 0 or an error. */
static int take_line(struct rest *r, struct http3_head *head) {
	const uint8_t first = *r->at;
	struct string value;
	uint64_t entry;
	bool parsed, indexed = first & 0x80;
	if (indexed) parsed = take_integer(r, 6, &entry) && first & 0x40;
	else if (first & 0x40) parsed = take_integer(r, 4, &entry) && first & 0x10 && take_string(r, 7, &value);
	else parsed = first & 0x20 && take_name(r, &entry) && take_string(r, 7, &value);
	if (!parsed || entry >= STATIC_ENTRIES)
		return HTTP3_DECOMPRESSION_FAILED; /* also what refers to the dynamic table */
	return note(head, entry, indexed ? NULL : &value) ? 0 : HTTP3_MESSAGE_ERROR;
}

int http3_head_parse(struct http3_head *head, const char *section, size_t length) {
	struct rest r = {.at = (const uint8_t *)section, .end = (const uint8_t *)section + length};
	uint64_t insertions, base;
	*head = (struct http3_head){.content_length = HTTP3_NO_LENGTH};
	if (!take_integer(&r, 8, &insertions) || insertions || !take_integer(&r, 7, &base))
		return HTTP3_DECOMPRESSION_FAILED;
	while (r.at < r.end) {
		const int error = take_line(&r, head);
		if (error) return error;
	}
	return head->status ? 0 : HTTP3_MESSAGE_ERROR;
}
