/* fuzz_http2.c - whatever frames come in, the output is whole frames, and nothing is kept at the end. For libFuzzer:
 * clang -fsanitize=fuzzer,address,undefined. */
#include <errno.h>
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
	require(loop && site_context_open(&site, loop, root, NULL, &options, 1, 10, 20) == 0);
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, end) == 0 && io_fd(loop, end[0], &loop) == 0);
	fd = end[0];
}

/* Ignores what would be sent; the output is checked below. */
static void ignore(void *connection) { (void)connection; }
static const struct streams_connection functions = {.send = ignore, .close = ignore};

/* Checks that frames are whole and not too long. */
static void check(const char *at, const char *end) {
	while (at < end) {
		struct frame f;
		size_t n = frame_read(&f, at, (size_t)(end - at));
		require(n > 0);
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
	require(h);
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
		check(frames, out.at);
	}
	struct http2_output out = {.at = frames, .end = frames + sizeof frames};
	http2_drain(h, &out);
	check(frames, out.at);
	http2_free(h);
	response_batch_free_spares(&batches);
	require(io_wait(loop, 0) == 0);
	site_context_collect(&site); /* frees jobs for which nothing waits any more */
	return 0;
}
