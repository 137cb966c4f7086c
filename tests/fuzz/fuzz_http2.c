/* fuzz_http2.c - whatever frames come in, the output is whole frames, and nothing is kept at the end. For libFuzzer:
 * clang -fsanitize=fuzzer,address,undefined. */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gatling/exchange/response_batch.h"
#include "gatling/http2/http2.h"
#include "tests/fuzz/site.h"

static io_loop *loop;
static struct site_context site;
static struct batch_pool batches;
static struct exchange_context exchanges;
static struct http2_context context;
static char frames[HTTP2_FRAMES];
static int fd; /* stands for the socket; no frames are sent */

static void set_up(void) {
	static const struct site_options options = {
		.listings = true, .cache = 1 << 20, .gzip_cache = 1 << 20, .cache_control = true};
	int end[2];
	const int root = site_make();
	site_add(root, "t.txt", 1000); /* is compressed */
	loop = io_loop_new();
	batches = (struct batch_pool){.now_ns = &site.now_ns};
	exchanges = (struct exchange_context){.site = &site, .batches = &batches};
	context = (struct http2_context){.exchanges = &exchanges, .memory_max = 512 * 1024};
	context.common_block[0] = SLICE("\x0f\x27\x01g");
	require((context.lines = shared_lines_new()));
	static char ready[16];
	ready_block_add(&context.common_ready[0], context.lines, SLICE("Server: g\r\n"), ready);
	require(loop && site_context_open(&site, loop, root, NULL, &options, 1, 10, 20) == 0);
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end) == 0 && io_fd(loop, end[0], &loop) == 0);
	fd = end[0];
}

/* Ignores what would be sent; the output is checked below. */
static void ignore(void *connection) { (void)connection; }
static const struct streams_connection functions = {.send = ignore, .close = ignore};

/* Checks that the client can decode part of a header block, and with it the dynamic table that was meant. */
static void check_block(nghttp2_hd_inflater *inflater, const struct frame *f) {
	const uint8_t *at = (const uint8_t *)f->payload;
	size_t left = f->length;
	for (int flags = 0; left || (f->flags & FRAME_FLAG_END_HEADERS && !(flags & NGHTTP2_HD_INFLATE_FINAL));) {
		nghttp2_nv nv;
		const ssize_t n =
			nghttp2_hd_inflate_hd2(inflater, &nv, &flags, at, left, !!(f->flags & FRAME_FLAG_END_HEADERS));
		require(n >= 0);
		at += n, left -= (size_t)n;
		require(!(flags & NGHTTP2_HD_INFLATE_EMIT) || nv.namelen != strlen("server") ||
				memcmp(nv.name, "server", nv.namelen) != 0 || (nv.valuelen == 1 && *nv.value == 'g'));
	}
	if (f->flags & FRAME_FLAG_END_HEADERS) nghttp2_hd_inflate_end_headers(inflater);
}

/* Checks that frames are whole and not too long. */
static void check(const char *at, const char *end, nghttp2_hd_inflater *inflater) {
	while (at < end) {
		struct frame f;
		size_t n = frame_read(&f, at, (size_t)(end - at));
		require(n > 0);
		if (f.type == FRAME_HEADERS || f.type == FRAME_CONTINUATION) check_block(inflater, &f);
		at += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	static char input[56 * 1024], preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	struct peer peer = {0};
	size_t kept = sizeof preface;
	if (!loop) set_up();
	struct http2 *h = http2_new(&context, &functions, NULL, &peer, FORWARDING_NONE, 80, false);
	nghttp2_hd_inflater *inflater;
	require(h && nghttp2_hd_inflate_new(&inflater) == 0);
	memcpy(input, preface, kept);
	/* the first octet of each piece has its length, and whether output is blocked */
	while (length && !http2_ended(h)) {
		size_t piece = (size_t)(data[0] >> 1) * 8 + 1;
		bool blocked = data[0] & 1;
		data++, length--;
		if (piece > length) piece = length;
		if (piece > sizeof input - kept) piece = sizeof input - kept;
		memcpy(input + kept, data, piece);
		data += piece, length -= piece;
		kept += piece;
		struct http2_output out = {.at = frames, .end = frames + sizeof frames, .blocked = blocked};
		size_t used = http2_receive(h, input, kept, &out);
		require(used <= kept);
		memmove(input, input + used, kept - used);
		kept -= used;
		static char block[STREAMS_BLOCK];
		struct http2_piece next;
		while (!blocked && http2_next(h, block, &next, &out)) {
			ssize_t n = iob_take(loop, fd, next.iob, next.to, next.length);
			if (n == -1 && errno == EAGAIN) break;
			http2_write(h, &next, n, &out);
		}
		require(out.at <= out.end);
		check(frames, out.at, inflater);
	}
	struct http2_output out = {.at = frames, .end = frames + sizeof frames};
	http2_drain(h, &out);
	check(frames, out.at, inflater);
	http2_free(h);
	nghttp2_hd_inflate_del(inflater);
	response_batch_free_spares(&batches);
	require(io_wait(loop, 0) == 0);
	site_context_collect(&site); /* frees jobs for which nothing waits any more */
	return 0;
}
