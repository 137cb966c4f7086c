/* gzip.c - see gzip.h. */
#include "gatling/base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "gatling/base/slice.h"

enum { PIECE = 16 * 1024, WINDOW_GZIP = MAX_WBITS + 16, MEMORY_LEVEL = 8 };

bool gzip_worthwhile(const char *media_type) {
	static const struct slice types[] = {SLICE("application/javascript"),
										 SLICE("application/json"),
										 SLICE("application/ld+json"),
										 SLICE("application/manifest+json"),
										 SLICE("application/rtf"),
										 SLICE("application/vnd.ms-fontobject"),
										 SLICE("application/wasm"),
										 SLICE("application/xml"),
										 SLICE("application/yaml"),
										 SLICE("font/otf"),
										 SLICE("font/ttf"),
										 SLICE("image/bmp"),
										 SLICE("image/vnd.microsoft.icon"),
										 SLICE("image/x-icon")};
	struct slice type = slice_first(slice_of(media_type), strcspn(media_type, ";"));
	if (slice_starts(type, SLICE("text/")) || slice_ends(type, SLICE("+xml")) || slice_ends(type, SLICE("+json")))
		return true;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (slice_equal(types[i], type)) return true;
	return false;
}

/* The input of zlib, read from its start. */
struct input {
	struct gzip_bytes bytes;
	iob_fill *fill; /* generates the bytes; NULL: they are in memory or in the file */
	void *owner;
	uint64_t offset;
	char buffer[PIECE];
};

static ssize_t read_piece(struct input *in, size_t size) {
	ssize_t n;
	if (in->fill) return in->fill(in->owner, in->buffer, size);
	do n = pread(in->bytes.file, in->buffer, size, (off_t)in->offset);
	while (n == -1 && errno == EINTR);
	return n;
}

/* Gives zlib the next piece. Returns its length, 0 at the end, -1 with errno. */
static ssize_t next_piece(struct input *in, z_stream *z) {
	const char *memory = in->bytes.memory;
	uint64_t left = in->bytes.length - in->offset;
	if (!left) return 0;
	ssize_t n = (ssize_t)(left < PIECE ? left : PIECE);
	if (!memory && (n = read_piece(in, (size_t)n)) <= 0) {
		if (n == 0) errno = EIO;
		return -1;
	}
	z->next_in = (Bytef *)(uintptr_t)(memory ? memory + in->offset : in->buffer);
	z->avail_in = (uInt)n;
	in->offset += (uint64_t)n;
	return n;
}

static int deflate_all(z_stream *z, struct input *in, const atomic_bool *stop) {
	int result = Z_OK;
	while (result == Z_OK) {
		if (stop && atomic_load(stop)) return ECANCELED;
		if (!z->avail_in && next_piece(in, z) == -1) return errno;
		result = deflate(z, in->offset == in->bytes.length ? Z_FINISH : Z_NO_FLUSH);
		if (!z->avail_out && result != Z_STREAM_END) return EFBIG;
	}
	return result == Z_STREAM_END ? 0 : EIO;
}

static int compress_all(struct input *in, int level, const atomic_bool *stop, char **body, uint64_t *size) {
	z_stream z = {0};
	uint64_t most = in->bytes.length; /* a larger result is of no use */
	*body = NULL;
	if (most > UINT_MAX) return EFBIG;
	char *out = malloc(most + 1);
	int error = ENOMEM;
	if (out && deflateInit2(&z, level, Z_DEFLATED, WINDOW_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK) {
		z.next_out = (Bytef *)out;
		z.avail_out = (uInt)most;
		error = deflate_all(&z, in, stop);
		*size = z.total_out;
		deflateEnd(&z);
	}
	if (error) {
		free(out);
		return error;
	}
	*body = realloc(out, *size);
	if (!*body) *body = out;
	return 0;
}

int gzip_compress(const struct gzip_bytes *bytes, const atomic_bool *stop, char **body, uint64_t *size) {
	return compress_all(&(struct input){.bytes = *bytes}, GZIP_LEVEL, stop, body, size);
}

int gzip_compress_generated(iob_fill *fill, void *owner, uint64_t length, const atomic_bool *stop, char **body,
							uint64_t *size) {
	struct input in = {.bytes.length = length, .fill = fill, .owner = owner};
	return compress_all(&in, GZIP_LEVEL_ONCE, stop, body, size);
}

/* --- decompressing --- */

struct gunzip {
	z_stream z;
	bool ended;
	struct input in;
};

/* Further members may follow the first; anything else after it is padding (RFC 1952, section 2.2). */
static bool next_member(struct gunzip *g) {
	if (!g->z.avail_in && next_piece(&g->in, &g->z) <= 0) return false;
	return g->z.next_in[0] == 0x1f && inflateReset(&g->z) == Z_OK;
}

/* Returns the bytes written to buffer, fewer than size only at the end; -1 with errno. */
static ssize_t gunzip(struct gunzip *g, char *buffer, size_t size) {
	g->z.next_out = (Bytef *)buffer;
	g->z.avail_out = (uInt)size;
	while (g->z.avail_out && !g->ended) {
		int result = inflate(&g->z, Z_NO_FLUSH);
		ssize_t n = 1;
		if (result == Z_STREAM_END) g->ended = !next_member(g);
		else if (result == Z_BUF_ERROR) n = next_piece(&g->in, &g->z);
		else if (result != Z_OK) n = 0;
		if (n == 0) errno = EILSEQ;
		if (n <= 0) return -1;
	}
	return (ssize_t)(size - g->z.avail_out);
}

static struct gunzip *gunzip_new(const struct gzip_bytes *bytes) {
	struct gunzip *g = calloc(1, sizeof *g);
	if (!g) return NULL;
	g->in.bytes = *bytes;
	if (inflateInit2(&g->z, WINDOW_GZIP) == Z_OK) return g;
	free(g);
	return NULL;
}

static void gunzip_free(struct gunzip *g) {
	if (g) inflateEnd(&g->z);
	free(g);
}

int gzip_measure(const struct gzip_bytes *bytes, const atomic_bool *stop, uint64_t *size) {
	struct gunzip *g = gunzip_new(bytes);
	char *buffer = malloc(PIECE);
	int error = g && buffer ? 0 : ENOMEM;
	*size = 0;
	for (ssize_t n = PIECE; !error && n == PIECE;) {
		n = gunzip(g, buffer, PIECE);
		if (n == -1) error = errno;
		else *size += (uint64_t)n;
		if (atomic_load(stop)) error = ECANCELED;
	}
	free(buffer);
	gunzip_free(g);
	return error;
}

/* --- for iob_addsource() --- */

struct gzip_reader {
	struct gzip_bytes bytes;
	iob_release *release;
	void *owner;
	struct gunzip *gunzip; /* NULL before the first piece */
};

struct gzip_reader *gzip_reader_new(const struct gzip_bytes *bytes, iob_release *release, void *owner) {
	struct gzip_reader *r = calloc(1, sizeof *r);
	if (r) *r = (struct gzip_reader){.bytes = *bytes, .release = release, .owner = owner};
	else release(owner);
	return r;
}

ssize_t gzip_reader_fill(void *reader, char *buffer, size_t size) {
	struct gzip_reader *r = reader;
	if (!r->gunzip && !(r->gunzip = gunzip_new(&r->bytes))) {
		errno = ENOMEM;
		return -1;
	}
	return gunzip(r->gunzip, buffer, size);
}

void gzip_reader_free(void *reader) {
	struct gzip_reader *r = reader;
	gunzip_free(r->gunzip);
	r->release(r->owner);
	free(r);
}
