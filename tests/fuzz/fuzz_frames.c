/* fuzz_frames.c - whatever a server sends on a WebSocket, its frames are parsed within their bounds, and with the same
 * result however they are divided. The first byte determines where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/client/frames.h"

enum { INPUT_MAX = 4096 };

/* The result, which does not depend on where the input was divided. */
struct seen {
	size_t used, content, ends, controls, control_bytes;
	const char *why; /* a literal */
	char last[FRAMES_CONTROL_MAX];
};

static void require(bool holds) {
	if (!holds) abort();
}

static void feed(struct frames *f, struct seen *s, const char *data, size_t length) {
	while (length && !s->why) {
		/* of exact size, so that a sanitizer sees reads beyond the end */
		char *copy = malloc(length);
		struct frames_event e;
		if (!copy) abort();
		memcpy(copy, data, length);
		const size_t n = frames_take(f, copy, length, &e);
		require(n > 0 && n <= length && (e.kind == FRAMES_WRONG) == (e.why != NULL));
		require(f->length <= FRAMES_MESSAGE_MAX);
		if (e.kind == FRAMES_CONTENT) {
			require(e.length <= n && e.at >= copy && e.at + e.length == copy + n);
			s->content += e.length;
			s->ends += e.ends;
		}
		if (e.kind == FRAMES_CONTROL) {
			require(e.length <= FRAMES_CONTROL_MAX && e.opcode >= FRAMES_CLOSE && e.opcode <= FRAMES_PONG);
			s->controls++;
			s->control_bytes += e.length;
			memcpy(s->last, e.at, e.length);
		}
		s->why = e.why;
		s->used += n;
		free(copy);
		data += n;
		length -= n;
	}
}

/* Makes a frame with the data. It is masked, so that a server may not send it. */
static void make(const char *data, size_t length) {
	char *frame = malloc(frames_size(length));
	struct frames f = {0};
	struct frames_event e;
	if (!frame) abort();
	frames_make(frame, FRAMES_BINARY, data, length);
	require(frames_take(&f, frame, frames_size(length), &e) == 2 && e.kind == FRAMES_WRONG);
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	if (length < 2 || length > INPUT_MAX) return 0;
	const char *rest = (const char *)data + 1;
	const size_t all = length - 1, cut = data[0] < all ? data[0] : all;
	struct frames whole = {0}, parts = {0};
	struct seen once = {0}, twice = {0};
	feed(&whole, &once, rest, all);
	feed(&parts, &twice, rest, cut);
	feed(&parts, &twice, rest + cut, all - cut);
	require(memcmp(&once, &twice, sizeof once) == 0);
	make(rest, all);
	return 0;
}
