/* fuzz_upstream.c - a request that is passed on is the same request to the upstream, and no fields of the connection
 * are left in a response. For libFuzzer: clang -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdlib.h>

#include "gatling/upstream/upstream_cgi.h"
#include "gatling/upstream/upstream_coding.h"

typedef int parse_response(struct upstream_response *response, const char *buffer, size_t length, bool head_only,
						   char *lines);

static void require(bool holds) {
	if (!holds) abort();
}

static void check_request(const char *data, size_t length) {
	static struct request q, again;
	static char head[UPSTREAM_REQUEST_MAX + 2 * HEAD_MAX];
	static const struct peer client;
	static const struct arrival arrival = {.client = &client};
	if (request_parse(&q, data, length) <= 0 || q.host.length > HOST_MAX) return;
	const struct upstream_request u = {
		.request = &q, .arrival = &arrival, .target = SLICE("/x"), .upgrades = upstream_upgrades(&q)};
	size_t n = upstream_request_head(head, &u);
	require(n <= UPSTREAM_REQUEST_MAX);
	int parsed = request_parse(&again, head, n);
	if (parsed == -431) return; /* the added fields made it longer than we accept */
	if (!q.host.length) return; /* HTTP/1.0 without Host */
	require(parsed == (int)n && slice_equal(again.method_name, q.method_name));
	require(again.framing == q.framing && again.content_length == q.content_length);
	require(slice_equal(again.path, SLICE("/x")) && again.keep_alive);
}

/* Checks that lines are complete, and about neither connections nor lengths. */
static void check_lines(struct slice rest, bool may_have_length) {
	while (rest.length) {
		struct slice line = slice_first(rest, slice_until(rest, '\n'));
		require(line.length < rest.length && line.length > 1 && line.at[line.length - 1] == '\r');
		require(slice_until(line, ':') < line.length && !slice_starts_nocase(line, SLICE("transfer-encoding:")));
		require(!slice_starts_nocase(line, SLICE("connection:")));
		require(may_have_length || !slice_starts_nocase(line, SLICE("content-length:")));
		slice_drop(&rest, line.length + 1);
	}
}

static void check_response(parse_response *parse, const char *data, size_t length, bool head_only) {
	static char lines[UPSTREAM_LINES_MAX], part_lines[UPSTREAM_LINES_MAX];
	struct upstream_response r, part;
	int n = parse(&r, data, length, head_only, lines);
	require(n <= (int)length);
	/* a shorter part is incomplete, or wrong in the same way */
	for (size_t i = 0; i < length && i < 64; i++) {
		int cut = parse(&part, data, i, head_only, part_lines);
		require(n > 0 && (int)i >= n ? cut == n : cut <= 0);
		if (n > 0 && (int)i < n) require(cut == 0);
	}
	if (n <= 0) return;
	struct slice rest = {.at = lines, .length = r.lines};
	require(r.lines <= UPSTREAM_LINES_MAX && r.status >= 100 && r.status <= 999);
	check_lines(rest, r.framing == BODY_NONE);
	for (enum coding coding = CODING_IDENTITY; coding <= CODING_ZSTD; coding++) {
		size_t changed = upstream_coding_lines(&r, rest, coding, part_lines);
		require(changed <= UPSTREAM_LINES_MAX);
		check_lines((struct slice){.at = part_lines, .length = changed}, r.framing == BODY_NONE);
	}
}

/* Checks the trailers that body_read() has accepted. */
static void check_trailers(const char *data, size_t length) {
	static char lines[UPSTREAM_TRAILERS_MAX];
	struct body body;
	struct slice content;
	body_start_any(&body, BODY_CHUNKED, 0);
	for (int n = 0; length && body_pending(&body); data += n, length -= (size_t)n) {
		const bool in_trailers = body_in_trailers(&body);
		n = body_read(&body, data, length, &content);
		require(n == -400 || n == -413 || (n > 0 && (size_t)n <= length));
		if (n < 0) return;
		if (!in_trailers) continue;
		require(!content.length && n <= TRAILER_MAX);
		check_lines((struct slice){.at = lines,
								   .length = upstream_trailers(
									   slice_first((struct slice){.at = data, .length = length}, (size_t)n), lines)},
					false);
	}
}

/* Checks that the variables for a program fit, and are the same for FastCGI and SCGI. */
static void check_variables(const char *data, size_t length) {
	static struct request q;
	static char head[UPSTREAM_CGI_MAX];
	static const struct peer client;
	static const struct arrival arrival = {.client = &client};
	const struct upstream_script script = {
		.root = SLICE("/srv"), .name = SLICE("/x"), .info = SLICE("/y"), .is_file = true};
	if (request_parse(&q, data, length) <= 0 || q.host.length > HOST_MAX || q.framing == BODY_CHUNKED) return;
	const struct upstream_request u = {.request = &q, .arrival = &arrival, .target = SLICE("/x?y"), .script = &script};
	require(upstream_fcgi_head(head, &u) <= sizeof head);
	size_t n = upstream_scgi_head(head, &u), netstring = (size_t)strtoull(head, NULL, 10);
	require(n <= sizeof head && n == slice_until((struct slice){.at = head, .length = n}, ':') + 1 + netstring + 1);
}

static void complain(void *context, struct slice line) {
	*(size_t *)context += line.length;
	require(line.length && !memchr(line.at, '\n', line.length));
}

/* Checks that records have the same content however they are divided. */
static void check_records(const char *data, size_t length) {
	static struct fcgi_records whole, pieces;
	size_t told = 0, told_again = 0, got = 0;
	char *copy = malloc(length + 1), *again = malloc(length + 1);
	if (!copy || !again) abort();
	memcpy(copy, data, length);
	whole = pieces = (struct fcgi_records){0};
	ssize_t n = fcgi_read(&whole, copy, length, complain, &told);
	for (size_t i = 0; i < length; i++) {
		again[got] = data[i];
		ssize_t one = fcgi_read(&pieces, again + got, 1, complain, &told_again);
		require(one >= 0 || n < 0);
		if (one < 0) break;
		got += (size_t)one;
	}
	require(n <= (ssize_t)length && told <= FCGI_COMPLAINTS_MAX);
	if (n >= 0) require((size_t)n == got && memcmp(copy, again, got) == 0 && told == told_again);
	free(copy);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	char *copy = malloc(length + 1); /* of exact size, so that a sanitizer sees reads beyond the end */
	if (!copy) return 0;
	memcpy(copy, data, length);
	check_request(copy, length);
	for (int head_only = 0; head_only < 2; head_only++) {
		check_response(upstream_response_parse, copy, length, head_only);
		check_response(upstream_cgi_response_parse, copy, length, head_only);
	}
	check_trailers(copy, length);
	check_variables(copy, length);
	check_records(copy, length);
	free(copy);
	return 0;
}
