/* fuzz_upstream.c - what is passed on: a request is the same one for whoever reads it next, and of a response no field
 * of its connection is left. For libFuzzer: clang -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdlib.h>

#include "gatling/upstream/upstream_head.h"

static void require(bool holds) {
	if (!holds) abort();
}

static void check_request(const char *data, size_t length) {
	static struct request q, again;
	static char head[UPSTREAM_REQUEST_MAX + 2 * HEAD_MAX];
	static const struct peer client;
	if (request_parse(&q, data, length) <= 0 || q.host.length > HOST_MAX) return;
	const struct upstream_request u = {.request = &q, .target = SLICE("/x"), .host = q.host, .client = &client};
	size_t n = upstream_request_head(head, &u);
	require(n <= UPSTREAM_REQUEST_MAX);
	int parsed = request_parse(&again, head, n);
	if (parsed == -431) return; /* what is added made it too long for ourselves */
	if (!q.host.length) return; /* HTTP/1.0 without Host */
	require(parsed == (int)n && slice_equal(again.method_name, q.method_name));
	require(again.framing == q.framing && again.content_length == q.content_length);
	require(slice_equal(again.path, SLICE("/x")) && again.keep_alive);
}

static void check_response(const char *data, size_t length, bool head_only) {
	static char lines[UPSTREAM_HEAD_MAX], part_lines[UPSTREAM_HEAD_MAX];
	struct upstream_response r, part;
	int n = upstream_response_parse(&r, data, length, head_only, lines);
	require(n <= (int)length);
	/* a start of it is incomplete, or wrong in the same way */
	for (size_t i = 0; i < length && i < 64; i++) {
		int cut = upstream_response_parse(&part, data, i, head_only, part_lines);
		require(n > 0 && (int)i >= n ? cut == n : cut <= 0);
		if (n > 0 && (int)i < n) require(cut == 0);
	}
	if (n <= 0) return;
	struct slice rest = {.at = lines, .length = r.lines};
	require(r.lines <= (size_t)n && r.status >= 100 && r.status <= 999);
	while (rest.length) {
		struct slice line = slice_first(rest, slice_until(rest, '\n'));
		require(line.length < rest.length && line.length > 1 && line.at[line.length - 1] == '\r');
		require(slice_until(line, ':') < line.length && !slice_starts_nocase(line, SLICE("transfer-encoding:")));
		require(!slice_starts_nocase(line, SLICE("connection:")));
		if (r.framing != BODY_NONE) require(!slice_starts_nocase(line, SLICE("content-length:")));
		slice_drop(&rest, line.length + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	char *copy = malloc(length + 1); /* of exactly that size, for the sanitizer to watch */
	if (!copy) return 0;
	memcpy(copy, data, length);
	check_request(copy, length);
	check_response(copy, length, false);
	check_response(copy, length, true);
	free(copy);
	return 0;
}
