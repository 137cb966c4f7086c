/* fuzz_request.c - whatever bytes come in, heads, bodies, paths, ranges and dates are parsed within their bounds, and
 * with the same result however the bytes are divided. For libFuzzer: clang -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/client/forwarded.h"
#include "gatling/http/body.h"
#include "gatling/http/host.h"
#include "gatling/http/path.h"
#include "gatling/http/precondition.h"
#include "gatling/http/range.h"
#include "gatling/log/access.h"

static void require(bool holds) {
	if (!holds) abort();
}

static void parse_path(struct slice path) {
	static char out[TARGET_MAX + 1], encoded[3 * TARGET_MAX], again[3 * TARGET_MAX];
	size_t length, again_length;
	if (path.length > TARGET_MAX || path_decode(path, out, &length) != 0) return;
	require(length <= path.length && !memchr(out, '\0', length) && (length == 0 || out[0] != '/'));
	out[length] = '\0';
	require(!strstr(out, "//") && !strstr(out, "/.") && (out[0] != '.' || strncmp(out, ".well-known", 11) == 0));
	size_t n = path_encode((struct slice){.at = out, .length = length}, encoded);
	require(path_decode((struct slice){.at = encoded, .length = n}, again, &again_length) == 0);
	require(again_length == length && memcmp(out, again, length) == 0);
}

/* Checks that the address that a proxy adds is found, whatever the client put in front. */
static void find_client(const struct request *q, enum forwarding by, enum field_name name, const char *added) {
	static const struct trusted_proxies nobody;
	static char list[HEAD_MAX + 64];
	struct request forwarded;
	struct peer client;
	char text[PEER_MAX + 1];
	(void)forwarded_client(&nobody, by, q, &client);
	struct slice front = request_field(q, name);
	if (front.length) memcpy(list, front.at, front.length);
	memcpy(list + front.length, added, strlen(added) + 1);
	require(request_begin(&forwarded, SLICE("GET"), SLICE("/")) == 0);
	require(request_add(&forwarded, name, slice_of(list)) == 0);
	require(forwarded_client(&nobody, by, &forwarded, &client));
	text[peer_format(text, &client)] = '\0';
	require(strcmp(text, "192.0.2.1") == 0);
}

static void use(const struct request *q) {
	const struct validators v = {
		.etag = SLICE("\"abc\""), .last_modified = 784111777, .date = SLICE("Sun, 06 Nov 1994 08:49:37 GMT")};
	struct range range[RANGES_MAX];
	char name[HOST_MAX + 1];
	if (q->host.length) {
		require(host_valid(q->host));
		size_t n = host_name(q->host, name);
		require(n <= HOST_MAX && !memchr(name, '/', n) && (n == 0 || name[0] != '.'));
	}
	parse_path(q->path);
	find_client(q, FORWARDING_X_FORWARDED_FOR, FIELD_X_FORWARDED_FOR, ",192.0.2.1");
	find_client(q, FORWARDING_FORWARDED, FIELD_FORWARDED, ", for=192.0.2.1;host=\"a,b\"");
	int ranges = range_parse(request_field(q, FIELD_RANGE), 1000, range);
	for (int i = 0; i < ranges; i++)
		require(range[i].length > 0 && range[i].first < 1000 && range[i].length <= 1000 - range[i].first);
	int status = precondition_status(q, &v);
	require(status == 0 || status == 304 || status == 412);
	(void)precondition_range(q, &v);
}

/* Logs a request, whether answered or refused. */
static void log_request(const struct request *q) {
	static char line[ACCESS_LINE_MAX];
	struct peer peer = {0};
	struct access access = access_of(&peer, q);
	for (enum log_format format = LOG_COMMON; format < LOG_OFF; format++) {
		struct access_style style = {.format = format, .date = SLICE("D")};
		size_t n = access_format(line, &style, &access);
		require(n < ACCESS_LINE_MAX && !memchr(line, '\n', n));
	}
}

/* Checks that a body in two pieces ends where the whole does. */
static void skip_body(const struct request *q, const char *data, size_t length) {
	struct body whole, halves;
	body_start(&whole, q);
	int used = body_skip(&whole, data, length);
	require(used <= (int)length);
	body_start(&halves, q);
	int first = body_skip(&halves, data, length / 2);
	if (first < 0) {
		require(used == first);
		return;
	}
	int second = body_pending(&halves) ? body_skip(&halves, data + first, length - (size_t)first) : 0;
	require(second < 0 ? used == second : used == first + second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	static struct request q, cut;
	char *copy = malloc(length + 1); /* of exact size, so that a sanitizer sees reads beyond the end */
	if (!copy) return 0;
	memcpy(copy, data, length);
	int n = request_parse(&q, copy, length);
	require(n <= (int)length);
	/* a shorter part is incomplete, or wrong in the same way */
	for (size_t i = 0; i < length && i < 64; i++) {
		int part = request_parse(&cut, copy, i);
		require(n > 0 && (int)i >= n ? part == n : part <= 0);
		if (n > 0 && (int)i < n) require(part == 0);
	}
	if (n != 0) log_request(&q);
	if (n > 0) {
		use(&q);
		skip_body(&q, copy + n, length - (size_t)n);
	}
	struct slice all = {.at = copy, .length = length};
	parse_path(all);
	(void)host_valid(all);
	free(copy);
	return 0;
}
