/* gzip.c - see gzip.h. */
#include "gatling/codec/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "gatling/codec/result.h"
#include "io/at_once.h"

enum { PIECE = 16 * 1024, WINDOW_GZIP = MAX_WBITS + 16, MEMORY_LEVEL = 8 };

bool gzip_worthwhile(struct slice type) {
	static const struct slice others[] = {SLICE("application/javascript"),
										  SLICE("application/json"),
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
	type = slice_trim(slice_first(type, slice_until(type, ';')));
	if (slice_starts_nocase(type, SLICE("text/")) || slice_ends(type, SLICE("+xml")) ||
		slice_ends(type, SLICE("+json")))
		return true;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (slice_equal_nocase(others[i], type)) return true;
	return false;
}

/* The input of zlib, read from its start. */
struct input {
	struct gzip_bytes bytes;
	iob_fill *fill;           /* generates the bytes; NULL: they are in memory or in the file */
	iob_unchanged *unchanged; /* returns whether the file is unchanged; NULL: it is not called */
	void *owner;              /* the argument of both */
	uint64_t offset;
	char *buffer; /* PIECE bytes, for input that is not in memory */
};

static ssize_t read_piece(struct input *in, size_t size) {
	ssize_t n;
	if (in->fill) return in->fill(in->owner, in->buffer, size);
	if (in->offset + size < in->bytes.length) io_start_reading(in->bytes.file, (off_t)(in->offset + size), PIECE);
	do n = pread(in->bytes.file, in->buffer, size, (off_t)in->offset);
	while (n == -1 && errno == EINTR);
	return n;
}

/* Gives zlib the next piece. Returns its length, 0 at the end, or -1 with errno. */
static ssize_t next_piece(struct input *in, z_stream *z) {
	const char *memory = in->bytes.memory;
	struct stat now;
	uint64_t left = in->bytes.length - in->offset;
	if (!left) return 0;
	ssize_t n = (ssize_t)(left < PIECE ? left : PIECE);
	if (!memory) n = read_piece(in, (size_t)n);
	if (n == 0 || (n > 0 && in->unchanged && (fstat(in->bytes.file, &now) == -1 || !in->unchanged(in->owner, &now)))) {
		errno = EIO;
		return -1;
	}
	if (n == -1) return -1;
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
	*size = 0;
	if (most > UINT_MAX) return EFBIG;
	char *out = malloc(most + 1);
	int error = ENOMEM;
	in->buffer = malloc(PIECE);
	if (out && in->buffer &&
		deflateInit2(&z, level, Z_DEFLATED, WINDOW_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK) {
		z.next_out = (Bytef *)out;
		z.avail_out = (uInt)most;
		error = deflate_all(&z, in, stop);
		*size = z.total_out;
		deflateEnd(&z);
	}
	free(in->buffer);
	return result_end(error, out, (size_t)*size, body);
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

size_t gzip_start(struct slice gzip, char *out, size_t size, bool *whole) {
	z_stream z = {.next_in = (Bytef *)(uintptr_t)gzip.at, .avail_in = (uInt)gzip.length, .next_out = (Bytef *)out};
	z.avail_out = (uInt)size;
	*whole = false;
	if (inflateInit2(&z, WINDOW_GZIP) != Z_OK) return 0;
	*whole = inflate(&z, Z_SYNC_FLUSH) == Z_STREAM_END && !z.avail_in;
	inflateEnd(&z);
	return size - z.avail_out;
}

struct gzip_reader {
	z_stream z;
	struct input in; /* its buffer is NULL before the first piece */
	bool ended;
	iob_release *release;
	void *owner;
};

/* Allocates the memory, before the first piece. Returns false if there is none. */
static bool begin(struct gzip_reader *r) {
	if (!r->in.buffer && inflateInit2(&r->z, WINDOW_GZIP) == Z_OK && !(r->in.buffer = malloc(PIECE))) inflateEnd(&r->z);
	return r->in.buffer;
}

static void end(struct gzip_reader *r) {
	if (r->in.buffer) inflateEnd(&r->z);
	free(r->in.buffer);
}

/* Goes on to the next member. Anything else behind a member is padding (RFC 1952, section 2.2). Returns false at the
 * end. */
static bool next_member(struct gzip_reader *r) {
	if (!r->z.avail_in && next_piece(&r->in, &r->z) <= 0) return false;
	return r->z.next_in[0] == 0x1f && inflateReset(&r->z) == Z_OK;
}

/* Returns the bytes written to buffer, fewer than size only at the end, or -1 with errno. */
ssize_t gzip_reader_fill(void *reader, char *buffer, size_t size) {
	struct gzip_reader *r = reader;
	errno = ENOMEM;
	if (!begin(r)) return -1;
	r->z.next_out = (Bytef *)buffer;
	r->z.avail_out = (uInt)size;
	while (r->z.avail_out && !r->ended) {
		int result = inflate(&r->z, Z_NO_FLUSH);
		ssize_t n = 1;
		if (result == Z_STREAM_END) r->ended = !next_member(r);
		else if (result == Z_BUF_ERROR) n = next_piece(&r->in, &r->z);
		else if (result != Z_OK) n = 0;
		if (n == 0) errno = result == Z_MEM_ERROR ? ENOMEM : EILSEQ;
		if (n <= 0) return -1;
	}
	return (ssize_t)(size - r->z.avail_out);
}

int gzip_measure(const struct gzip_bytes *bytes, const atomic_bool *stop, uint64_t *size) {
	struct gzip_reader r = {.in.bytes = *bytes};
	char buffer[PIECE];
	int error = 0;
	*size = 0;
	for (ssize_t n = PIECE; !error && n == PIECE;) {
		n = gzip_reader_fill(&r, buffer, PIECE);
		if (n == -1) error = errno;
		else *size += (uint64_t)n;
		if (atomic_load(stop)) error = ECANCELED;
	}
	end(&r);
	return error;
}

struct gzip_reader *gzip_reader_new(const struct gzip_bytes *bytes, iob_unchanged *unchanged, iob_release *release,
									void *owner) {
	struct gzip_reader *r = calloc(1, sizeof *r);
	const struct input in = {.bytes = *bytes, .unchanged = unchanged, .owner = owner};
	if (r) *r = (struct gzip_reader){.in = in, .release = release, .owner = owner};
	else release(owner);
	return r;
}

void gzip_reader_free(void *reader) {
	struct gzip_reader *r = reader;
	end(r);
	r->release(r->owner);
	free(r);
}

/* --- compressing as it comes --- */

/* zconf.h: 32 KB with these windows, and about 6 KB */
enum { WRITER_WINDOW = 12 + 16, WRITER_MEMORY = 5, WRITER_BYTES = 48 * 1024 };

struct gzip_writer {
	struct writer writer; /* first: a pointer to it is one to this */
	z_stream z;
};

static size_t compress_piece(struct writer *writer, struct slice *content, enum writer_step step) {
	static const int flush[] = {[WRITER_MORE] = Z_NO_FLUSH, [WRITER_FLUSH] = Z_SYNC_FLUSH, [WRITER_END] = Z_FINISH};
	z_stream *const z = &((struct gzip_writer *)writer)->z;
	z->next_in = (Bytef *)(uintptr_t)content->at;
	z->avail_in = content->length < UINT_MAX ? (uInt)content->length : UINT_MAX;
	const uInt given = z->avail_in;
	z->next_out = (Bytef *)writer->out;
	z->avail_out = WRITER_OUT;
	writer->ended = deflate(z, flush[step]) == Z_STREAM_END;
	slice_drop(content, given - z->avail_in);
	return WRITER_OUT - z->avail_out;
}

static void free_writer(struct writer *writer) {
	deflateEnd(&((struct gzip_writer *)writer)->z);
	free(writer);
}

struct writer *gzip_writer_new(void) {
	static const struct writer_codec codec = {.memory = WRITER_BYTES, .compress = compress_piece, .free = free_writer};
	struct gzip_writer *w = malloc(sizeof *w);
	if (!w) return NULL;
	w->z = (z_stream){0};
	writer_begin(&w->writer, &codec);
	if (deflateInit2(&w->z, GZIP_LEVEL_ONCE, Z_DEFLATED, WRITER_WINDOW, WRITER_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK)
		return &w->writer;
	free(w);
	return NULL;
}
