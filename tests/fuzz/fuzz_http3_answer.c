/* fuzz_http3_answer.c - whatever a server sends on a stream of HTTP/3, httpbench parses its frames and heads within
 * their bounds, and with the same result however they are divided. The first byte determines where. */
#include <stdlib.h>
#include <string.h>

#include "bench/client/http3_head.h"

enum { INPUT_MAX = 4096 };

/* The result, which does not depend on where the input was divided. */
struct seen {
	size_t used, content, frames, bytes;
	uint64_t statuses;
	unsigned wrong;
	bool between;
};

static void require(bool holds) {
	if (!holds) abort();
}

static void take_whole(struct seen *s, const struct http3_event *e) {
	struct http3_head head;
	char *copy = malloc(e->length ? e->length : 1); /* of exact size, so that a sanitizer sees reads beyond the end */
	if (!copy) abort();
	if (e->length) memcpy(copy, e->at, e->length);
	const int error = http3_head_parse(&head, copy, e->length);
	require(!error || error == HTTP3_DECOMPRESSION_FAILED || error == HTTP3_MESSAGE_ERROR);
	require(error || (head.status >= 100 && head.status <= 999 && head.content_length >= HTTP3_NO_LENGTH));
	s->statuses = s->statuses * 31 + (error ? (unsigned)error : head.status);
	s->frames++;
	s->bytes += e->length;
	free(copy);
}

static void feed(struct http3_frames *f, struct seen *s, const char *data, size_t length) {
	while (length && !s->wrong) {
		char *copy = malloc(length);
		struct http3_event e;
		if (!copy) abort();
		memcpy(copy, data, length);
		const size_t n = http3_frames_take(f, copy, length, &e);
		require(n <= length && (n > 0 || e.kind == HTTP3_WRONG) &&
				f->kept_length <= HTTP3_FRAME_MAX + 2 * HTTP3_NUMBER);
		if (e.kind == HTTP3_CONTENT) {
			require(e.length == n && e.at == copy);
			s->content += n;
		}
		if (e.kind == HTTP3_WHOLE) take_whole(s, &e);
		if (e.kind == HTTP3_WRONG) s->wrong = e.error;
		else s->used += n;
		free(copy);
		data += n;
		length -= n;
	}
	s->between = http3_frames_between(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	if (length < 2 || length > INPUT_MAX) return 0;
	const char *rest = (const char *)data + 1;
	const size_t all = length - 1, cut = data[0] < all ? data[0] : all;
	struct http3_frames whole = {0}, parts = {0};
	struct seen once = {0}, twice = {0};
	feed(&whole, &once, rest, all);
	feed(&parts, &twice, rest, cut);
	feed(&parts, &twice, rest + cut, all - cut);
	require(once.wrong == twice.wrong && once.frames == twice.frames && once.bytes == twice.bytes);
	require(once.statuses == twice.statuses && once.content == twice.content);
	require(once.wrong || (once.used == twice.used && once.between == twice.between));
	http3_frames_free(&whole);
	http3_frames_free(&parts);
	return 0;
}
