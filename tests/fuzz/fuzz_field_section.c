/* fuzz_field_section.c - whatever field sections of HTTP/3 come, they are decoded within their bounds, to the request
 * that the same fields are over HTTP/2, and none keeps the next one from being decoded. For libFuzzer: clang
 * -fsanitize=fuzzer,address,undefined. */
#include <nghttp3/nghttp3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/http/host.h"
#include "gatling/http2/session.h"
#include "gatling/http3/field_section.h"
#include "tests/quic/require.h"

enum { BLOCK_MAX = 256 * 1024, INTEGER_MAX = 6 };

/* What a request was decoded to. */
struct decoded {
	struct request request;
	struct priority priority;
	int status;
	char text[REQUEST_TEXT];
};

static struct field_decoder *decoder;

/* --- the same fields as a header block of HTTP/2, without tables --- */

static size_t put_string(unsigned char *to, nghttp3_vec s) {
	size_t n = 1, left = s.len - 127;
	*to = s.len < 127 ? (unsigned char)s.len : 127;
	for (; s.len >= 127 && left >= 128; left >>= 7) to[n++] = (unsigned char)(left | 128);
	if (s.len >= 127) to[n++] = (unsigned char)left;
	if (s.len) memcpy(to + n, s.base, s.len);
	return n + s.len;
}

/* Returns the length of the block, or -1 if the section cannot be decoded. */
static long translate(struct slice section, unsigned char *block) {
	nghttp3_qpack_decoder *d;
	nghttp3_qpack_stream_context *context;
	uint8_t flags = 0;
	long length = 0;
	require(nghttp3_qpack_decoder_new(&d, 0, 0, nghttp3_mem_default()) == 0);
	require(nghttp3_qpack_stream_context_new(&context, 0, nghttp3_mem_default()) == 0);
	while (length >= 0 && !(flags & NGHTTP3_QPACK_DECODE_FLAG_FINAL)) {
		nghttp3_qpack_nv nv;
		const nghttp3_ssize n =
			nghttp3_qpack_decoder_read_request(d, context, &nv, &flags, (const uint8_t *)section.at, section.length, 1);
		if (n < 0 || flags & NGHTTP3_QPACK_DECODE_FLAG_BLOCKED) length = -1;
		else section = slice_rest(section, (size_t)n);
		if (length < 0 || !(flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT)) continue;
		const nghttp3_vec name = nghttp3_rcbuf_get_buf(nv.name), value = nghttp3_rcbuf_get_buf(nv.value);
		if ((size_t)length + name.len + value.len + 1 + 2 * INTEGER_MAX > BLOCK_MAX) length = -1;
		else {
			block[length++] = 0x10; /* a literal that is never indexed, with a literal name (RFC 7541, section 6.2.3) */
			length += (long)put_string(block + length, name);
			length += (long)put_string(block + length, value);
		}
		nghttp3_rcbuf_decref(nv.name);
		nghttp3_rcbuf_decref(nv.value);
	}
	nghttp3_qpack_stream_context_del(context);
	nghttp3_qpack_decoder_del(d);
	return length;
}

static void decode_http2(struct decoded *d, const unsigned char *block, size_t length, bool trailers, bool passes) {
	nghttp2_hd_inflater *inflater;
	require(nghttp2_hd_inflate_new(&inflater) == 0);
	d->priority = PRIORITY_DEFAULT;
	d->status = http2_request_decode(inflater, block, length, trailers, passes, d->text, &d->request, &d->priority);
	nghttp2_hd_inflate_del(inflater);
}

/* --- what is compared --- */

static bool same(struct slice a, struct slice b) {
	return !a.at == !b.at && a.length == b.length && (!a.length || memcmp(a.at, b.at, a.length) == 0);
}

static void compare(const struct decoded *one, const struct decoded *other) {
	const struct request *a = &one->request, *b = &other->request;
	const size_t version = strlen(" HTTP/3.0");
	require(one->status == other->status && same(a->lines, b->lines));
	require(same(a->method_name, b->method_name) && same(a->path, b->path));
	require(same(a->query, b->query) && same(a->host, b->host) && a->line.length == b->line.length);
	if (a->line.length > version)
		require(memcmp(a->line.at, b->line.at, a->line.length - version) == 0 && a->fields == b->fields);
	require(a->known == b->known && a->repeated == b->repeated && a->content_length == b->content_length);
	require(a->websocket == b->websocket && a->expect_continue == b->expect_continue);
	require(one->priority.urgency == other->priority.urgency &&
			one->priority.incremental == other->priority.incremental);
}

static void check_lines(struct slice rest) {
	while (rest.length) {
		const struct slice line = slice_first(rest, slice_until(rest, '\n'));
		require(line.length < rest.length && line.length > 1 && line.at[line.length - 1] == '\r');
		require(slice_until(line, ':') < line.length && line.at[0] != ':' && !memchr(line.at, '\0', line.length));
		slice_drop(&rest, line.length + 1);
	}
}

static void check_request(const struct request *q) {
	require(q->host.length && host_valid(q->host));
	require(q->path.at && (q->path.at[0] == '/' || slice_equal(q->path, SLICE("*")) ||
						   slice_equal(q->method_name, SLICE("CONNECT")))); /* which has an authority there */
	require(!memchr(q->line.at, '\r', q->line.length) && !memchr(q->line.at, '\n', q->line.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	static const struct slice get = SLICE("\0\0\xd1\xd7\xc1\x50\x09localhost");
	static struct decoded found, other;
	static unsigned char block[BLOCK_MAX];
	if (!length) return 0;
	const bool trailers = data[0] & 1, passes = data[0] & 2;
	char *copy = malloc(length); /* of exact size, so that a sanitizer sees reads beyond the end */
	if (!decoder) decoder = field_decoder_new();
	require(copy && decoder);
	memcpy(copy, data + 1, length - 1);
	const struct slice section = {.at = copy, .length = length - 1};
	found.priority = PRIORITY_DEFAULT;
	found.status =
		field_section_decode(decoder, section, trailers, passes, found.text, &found.request, &found.priority);
	const long translated = translate(section, block);
	if (translated < 0) {
		require(found.status == FIELD_SECTION_WRONG || found.status == 431);
	} else if (found.status != 431) { /* the limits of the libraries differ */
		decode_http2(&other, block, (size_t)translated, trailers, passes);
		compare(&found, &other);
	}
	if (found.status == 0) check_lines(found.request.lines);
	if (found.status == 0 && !trailers) check_request(&found.request);
	found.priority = PRIORITY_DEFAULT;
	require(field_section_decode(decoder, get, false, false, found.text, &found.request, &found.priority) == 0);
	free(copy);
	return 0;
}
