/* fuzz_answer.c - whatever a server sends or a log contains, responses and histogram logs are parsed within their
 * bounds, responses with the same result however they are divided. The first byte determines which it is, and where it
 * is divided. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/hlog.h"
#include "bench/client/response.h"

enum { COPY_MAX = 4096 };

static void require(bool holds) {
	if (!holds) abort();
}

/* Feeds a part of a response. Returns how many bytes of it were used, or -1. */
static int feed(struct response *r, const char *data, size_t length, const struct response_expected *expected) {
	size_t used = 0;
	while (used < length && !response_complete(r)) {
		/* of exact size, so that a sanitizer sees reads beyond the end */
		size_t rest = length - used;
		char *copy = malloc(rest);
		if (!copy) abort();
		memcpy(copy, data + used, rest);
		int n = r->status ? response_content(r, copy, rest, expected) : response_head(r, copy, rest, false);
		free(copy);
		require(n >= -1 && n <= (int)rest);
		if (n == -1) return -1;
		if (n == 0) break;
		used += (size_t)n;
	}
	return (int)used;
}

static void parse_answer(const char *data, size_t length, size_t cut) {
	static const struct response_expected expected = {.at = "hello", .length = 5};
	struct response whole = {0}, parts = {0};
	int used = feed(&whole, data, length, &expected);
	if (cut > length) cut = length;
	int first = feed(&parts, data, cut, &expected);
	int rest = first == -1 ? -1 : feed(&parts, data + first, length - (size_t)first, &expected);
	if (used == -1 || rest == -1) {
		require(used == rest);
		return;
	}
	require(first + rest == used && whole.status == parts.status && whole.seen == parts.seen);
	require(whole.differs == parts.differs && whole.close == parts.close);
	require(response_complete(&whole) == response_complete(&parts));
}

static void read_log(const char *data, size_t length) {
	static struct histogram h;
	static char text[HLOG_LINE_MAX];
	struct hlog_line line;
	FILE *in = fmemopen((void *)data, length, "r");
	if (!in) return;
	for (enum hlog_result result = HLOG_COMMENT; result == HLOG_COMMENT || result == HLOG_INTERVAL;) {
		result = hlog_read(in, &line, &h, text);
		for (double p = 0; p <= 100; p += 50) (void)histogram_percentile(&h, p);
		(void)histogram_deviation(&h);
		histogram_reset(&h);
	}
	fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	if (length < 2 || length > COPY_MAX) return 0;
	const char *rest = (const char *)data + 1;
	if (data[0] == '#') read_log(rest, length - 1);
	else parse_answer(rest, length - 1, data[0]);
	return 0;
}
