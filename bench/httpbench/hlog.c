/* hlog.c - see hlog.h. A histogram is encoded in layers. The outermost is base64, of a cookie, a length and a zlib
 * stream. The stream has a header of 40 bytes, big-endian, and the counts as ZigZag LEB128. A negative number -n stands
 * for n counts of 0. */
#include "bench/httpbench/hlog.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

enum {
	COOKIE = 0x1c849303 | 0x10, /* V2; bits 4 to 7 are the word size, which V2 does not have */
	COOKIE_COMPRESSED = 0x1c849304 | 0x10,
	COOKIE_MASK = ~0xf0,
	HEADER = 40,
	OUTER_HEADER = 8,
	COUNT_MAX = 9, /* bytes of an encoded count */
	PLAIN_MAX = HEADER + COUNT_MAX * HISTOGRAM_COUNTS
};

static void put_big_endian(unsigned char *at, uint64_t value, int bytes) {
	for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
}

static uint64_t get_big_endian(const unsigned char *at, int bytes) {
	uint64_t value = 0;
	for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
	return value;
}

/* Writes up to eight groups of seven bits, then the rest as a byte of eight. Returns how many bytes it wrote. */
static size_t put_count(unsigned char *at, int64_t count) {
	uint64_t rest = (uint64_t)count << 1 ^ (uint64_t)(count >> 63);
	size_t n = 0;
	while (rest >= 0x80 && n < COUNT_MAX - 1) {
		at[n++] = (unsigned char)(rest | 0x80);
		rest >>= 7;
	}
	at[n++] = (unsigned char)rest;
	return n;
}

/* Reads a count. Returns how many bytes it used, or 0 if there are too few. */
static size_t get_count(const unsigned char *at, size_t length, int64_t *count) {
	uint64_t value = 0;
	for (size_t n = 0; n < length && n < COUNT_MAX; n++) {
		bool last = n == COUNT_MAX - 1 || !(at[n] & 0x80);
		value |= (uint64_t)(n == COUNT_MAX - 1 ? at[n] : at[n] & 0x7f) << 7 * n;
		if (!last) continue;
		*count = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
		return n + 1;
	}
	return 0;
}

/* Writes the counts up to the last one that is not 0. Returns how many bytes it wrote. */
static size_t put_counts(unsigned char *at, const struct histogram *h) {
	size_t n = 0;
	unsigned last = h->samples ? histogram_index(h->most) : 0;
	for (unsigned i = 0; h->samples && i <= last;) {
		int64_t zeros = 0;
		while (h->count[i] == 0) i++, zeros++;
		if (zeros) n += put_count(at + n, -zeros);
		n += put_count(at + n, (int64_t)h->count[i++]);
	}
	return n;
}

static size_t put_histogram(unsigned char *plain, const struct histogram *h) {
	size_t counts = put_counts(plain + HEADER, h);
	double ratio = 1;
	uint64_t ratio_bits;
	memcpy(&ratio_bits, &ratio, sizeof ratio_bits);
	put_big_endian(plain, COOKIE, 4);
	put_big_endian(plain + 4, counts, 4);
	put_big_endian(plain + 8, 0, 4); /* normalizing offset */
	put_big_endian(plain + 12, HISTOGRAM_DIGITS, 4);
	put_big_endian(plain + 16, HISTOGRAM_LOWEST, 8);
	put_big_endian(plain + 24, (uint64_t)HISTOGRAM_HIGHEST, 8);
	put_big_endian(plain + 32, ratio_bits, 8);
	return HEADER + counts;
}

/* Returns a histogram in base64, which the caller frees, or NULL with ENOMEM. */
static char *encode(const struct histogram *h) {
	uLongf packed_length = compressBound(PLAIN_MAX);
	unsigned char *plain = malloc(PLAIN_MAX), *packed = malloc(OUTER_HEADER + packed_length);
	char *text = NULL;
	if (plain && packed) {
		size_t length = put_histogram(plain, h);
		if (compress(packed + OUTER_HEADER, &packed_length, plain, length) == Z_OK) {
			put_big_endian(packed, COOKIE_COMPRESSED, 4);
			put_big_endian(packed + 4, packed_length, 4);
			length = OUTER_HEADER + packed_length;
			text = malloc(4 * (length + 2) / 3 + 1);
			if (text) EVP_EncodeBlock((unsigned char *)text, packed, (int)length);
		}
	}
	free(plain);
	free(packed);
	if (!text) errno = ENOMEM;
	return text;
}

void hlog_begin(FILE *out, double started_s) {
	char date[64];
	time_t second = (time_t)started_s;
	struct tm tm;
	gmtime_r(&second, &tm);
	strftime(date, sizeof date, "%a %b %d %T UTC %Y", &tm);
	fputs("#[Histogram log format version 1.3]\n", out);
	fprintf(out, "#[StartTime: %.3f (seconds since epoch), %s]\n", started_s, date);
	fputs("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n", out);
}

int hlog_write(FILE *out, const char *tag, double start_s, double length_s, const struct histogram *h) {
	char *text = encode(h);
	if (!text) return -1;
	double most_ms = h->samples ? (double)histogram_highest(histogram_index(h->most)) / 1e6 : 0;
	int n = fprintf(out, "Tag=%s,%.6f,%.6f,%.3f,%s\n", tag, start_s, length_s, most_ms, text);
	free(text);
	return n < 0 ? -1 : 0;
}

/* --- reading --- */

static bool add_counts(struct histogram *h, const unsigned char *at, size_t length) {
	const unsigned longest =
		histogram_index(HISTOGRAM_HIGHEST); /* other writers keep longer durations in places above it */
	uint64_t place = 0;
	while (length) {
		int64_t count;
		size_t n = get_count(at, length, &count);
		if (!n) return false;
		at += n;
		length -= n;
		if (count < 0) {
			place += (uint64_t)-count;
			continue;
		}
		if (place >= HISTOGRAM_COUNTS) return false;
		histogram_record_at(h, place < longest ? (unsigned)place : longest, (uint64_t)count);
		place++;
	}
	return true;
}

/* Adds an uncompressed histogram. Returns an error message, or NULL. */
static const char *add_plain(struct histogram *h, const unsigned char *plain, size_t length) {
	if (length < HEADER || ((uint32_t)get_big_endian(plain, 4) & COOKIE_MASK) != (COOKIE & COOKIE_MASK))
		return "not a V2 histogram";
	if (get_big_endian(plain + 4, 4) != length - HEADER) return "its counts are cut short";
	if (get_big_endian(plain + 8, 4) != 0 || get_big_endian(plain + 12, 4) != HISTOGRAM_DIGITS ||
		get_big_endian(plain + 16, 8) != HISTOGRAM_LOWEST ||
		get_big_endian(plain + 24, 8) > (uint64_t)HISTOGRAM_HIGHEST)
		return "a histogram of another range: only 1 ns to 1 h with 3 digits can be added";
	struct histogram *fresh = calloc(1, sizeof *fresh);
	if (!fresh) return "no memory";
	bool added = add_counts(fresh, plain + HEADER, length - HEADER);
	if (added) histogram_add(h, fresh);
	free(fresh);
	return added ? NULL : "its counts make no sense";
}

static const char *decode(struct histogram *h, const char *text) {
	static const char broken[] = "a histogram cut short";
	size_t length = strcspn(text, "\r\n");
	if (length % 4 || length < 16) return broken;
	unsigned char *packed = malloc(length), *plain = malloc(PLAIN_MAX);
	const char *wrong = "no memory";
	if (packed && plain) {
		int n = EVP_DecodeBlock(packed, (const unsigned char *)text, (int)length);
		if (n > 0) n -= (text[length - 1] == '=') + (text[length - 2] == '=');
		uLongf plain_length = PLAIN_MAX;
		if (n < OUTER_HEADER ||
			((uint32_t)get_big_endian(packed, 4) & COOKIE_MASK) != (COOKIE_COMPRESSED & COOKIE_MASK))
			wrong = "not a compressed V2 histogram";
		else if (get_big_endian(packed + 4, 4) != (uint64_t)n - OUTER_HEADER ||
				 uncompress(plain, &plain_length, packed + OUTER_HEADER, (uLong)n - OUTER_HEADER) != Z_OK)
			wrong = broken;
		else wrong = add_plain(h, plain, plain_length);
	}
	free(packed);
	free(plain);
	return wrong;
}

/* Parses "Tag=T,start,length,max,histogram". Returns the start of the histogram, or NULL. */
static const char *parse_line(const char *text, struct hlog_line *line) {
	line->tag[0] = '\0';
	if (strncmp(text, "Tag=", 4) == 0) {
		size_t n = strcspn(text + 4, ",\n");
		if (n > HLOG_TAG_MAX || text[4 + n] != ',') return NULL;
		memcpy(line->tag, text + 4, n);
		line->tag[n] = '\0';
		text += 4 + n + 1;
	}
	double number[3];
	for (int i = 0; i < 3; i++) {
		char *end;
		number[i] = strtod(text, &end);
		if (end == text || *end != ',') return NULL;
		text = end + 1;
	}
	line->start_s = number[0];
	line->length_s = number[1];
	return text;
}

enum hlog_result hlog_read(FILE *in, struct hlog_line *line, struct histogram *h, char *text) {
	while (fgets(text, HLOG_LINE_MAX, in)) {
		size_t length = strlen(text);
		bool whole = length && text[length - 1] == '\n'; /* a '\0' in it ends it, too */
		if (text[0] == '#' && whole) {
			size_t comment = strcspn(text + 1, "\r\n");
			memmove(text, text + 1, comment);
			text[comment] = '\0';
			return HLOG_COMMENT;
		}
		if (text[0] == '"' || text[0] == '\n') continue;
		const char *histogram = whole ? parse_line(text, line) : NULL;
		const char *wrong = !whole       ? "the last line is cut short"
							: !histogram ? "not a line of a histogram log"
										 : decode(h, histogram);
		if (!wrong) return HLOG_INTERVAL;
		snprintf(text, HLOG_LINE_MAX, "%s", wrong);
		return HLOG_BROKEN;
	}
	return HLOG_END;
}
