/* gzip.c - see gzip.h. */
#include "gatling/base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 16 * 1024, WINDOW_GZIP = MAX_WBITS + 16, MEMORY_LEVEL = 8 };

bool gzip_worthwhile(const char *type) {
	static const char *const types[] = {"application/javascript",
										"application/json",
										"application/ld+json",
										"application/manifest+json",
										"application/rtf",
										"application/vnd.ms-fontobject",
										"application/wasm",
										"application/xml",
										"application/yaml",
										"font/otf",
										"font/ttf",
										"image/bmp",
										"image/vnd.microsoft.icon",
										"image/x-icon"};
	size_t length = strcspn(type, ";");
	if (strncmp(type, "text/", 5) == 0) return true;
	if (length > 4 && memcmp(type + length - 4, "+xml", 4) == 0) return true;
	if (length > 5 && memcmp(type + length - 5, "+json", 5) == 0) return true;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strlen(types[i]) == length && memcmp(types[i], type, length) == 0) return true;
	return false;
}

/* Bytes from the front: in memory, or made piece by piece. */
struct input {
	const char *memory;
	iob_fill *fill;
	void *owner;
	uint64_t offset, length;
	char buffer[PIECE];
};

/* A file, from the front. */
struct stored {
	int file;
	uint64_t offset;
};

static ssize_t read_stored(void *owner, char *buffer, size_t size) {
	struct stored *s = owner;
	ssize_t n;
	do n = pread(s->file, buffer, size, (off_t)s->offset);
	while (n == -1 && errno == EINTR);
	if (n > 0) s->offset += (uint64_t)n;
	return n;
}

static void input_stored(struct input *in, struct stored *s, const struct gzip_bytes *bytes) {
	*s = (struct stored){.file = bytes->file};
	in->memory = bytes->memory;
	in->fill = read_stored;
	in->owner = s;
	in->offset = 0;
	in->length = bytes->length;
}

/* Gives zlib the next piece. The bytes of it, 0 at the end, -1 with errno. */
static ssize_t next_piece(struct input *in, z_stream *z) {
	uint64_t left = in->length - in->offset;
	ssize_t want = (ssize_t)(left < PIECE ? left : PIECE), n = want;
	const char *piece = in->memory ? in->memory + in->offset : in->buffer;
	if (!in->memory && want) n = in->fill(in->owner, in->buffer, (size_t)want);
	if (n == 0 && want) errno = EIO;
	if (n == -1 || (n == 0 && want)) return -1;
	z->next_in = (Bytef *)(uintptr_t)piece;
	z->avail_in = (uInt)n;
	in->offset += (uint64_t)n;
	return n;
}

static int deflate_all(z_stream *z, struct input *in, const atomic_bool *stop) {
	int result = Z_OK;
	while (result == Z_OK) {
		if (stop && atomic_load(stop)) return ECANCELED;
		if (!z->avail_in && next_piece(in, z) == -1) return errno;
		result = deflate(z, in->offset == in->length ? Z_FINISH : Z_NO_FLUSH);
		if (!z->avail_out && result != Z_STREAM_END) return EFBIG;
	}
	return result == Z_STREAM_END ? 0 : EIO;
}

static int compress_all(struct input *in, int level, const atomic_bool *stop, char **body, uint64_t *size) {
	z_stream z = {0};
	*body = NULL;
	if (in->length > UINT_MAX) return EFBIG;
	char *out = malloc(in->length + 1); /* more is of no use */
	int error = ENOMEM;
	if (out && deflateInit2(&z, level, Z_DEFLATED, WINDOW_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK) {
		z.next_out = (Bytef *)out;
		z.avail_out = (uInt)in->length;
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
	struct stored stored;
	struct input in;
	input_stored(&in, &stored, bytes);
	return compress_all(&in, GZIP_LEVEL, stop, body, size);
}

int gzip_made(iob_fill *fill, void *owner, uint64_t length, const atomic_bool *stop, char **body, uint64_t *size) {
	struct input in;
	in.memory = NULL;
	in.fill = fill;
	in.owner = owner;
	in.offset = 0;
	in.length = length;
	return compress_all(&in, GZIP_LEVEL_MADE, stop, body, size);
}

/* --- unpacking --- */

struct unpacking {
	z_stream z;
	bool ended;
	struct stored stored;
	struct input in;
};

/* Further members may follow the first, and what is no member is padding (RFC 1952, section 2.2). */
static bool next_member(struct unpacking *u) {
	if (!u->z.avail_in && next_piece(&u->in, &u->z) <= 0) return false;
	return u->z.next_in[0] == 0x1f && inflateReset(&u->z) == Z_OK;
}

/* The bytes written to buffer; fewer than size only at the end; -1 with errno. */
static ssize_t unpack(struct unpacking *u, char *buffer, size_t size) {
	u->z.next_out = (Bytef *)buffer;
	u->z.avail_out = (uInt)size;
	while (u->z.avail_out && !u->ended) {
		int result = inflate(&u->z, Z_NO_FLUSH);
		ssize_t n = 1;
		if (result == Z_STREAM_END) u->ended = !next_member(u);
		else if (result == Z_BUF_ERROR) n = next_piece(&u->in, &u->z);
		else if (result != Z_OK) n = 0;
		if (n == 0) errno = EILSEQ;
		if (n <= 0) return -1;
	}
	return (ssize_t)(size - u->z.avail_out);
}

static struct unpacking *unpacking_new(const struct gzip_bytes *bytes) {
	struct unpacking *u = calloc(1, sizeof *u);
	if (!u) return NULL;
	input_stored(&u->in, &u->stored, bytes);
	if (inflateInit2(&u->z, WINDOW_GZIP) == Z_OK) return u;
	free(u);
	return NULL;
}

static void unpacking_free(struct unpacking *u) {
	if (u) inflateEnd(&u->z);
	free(u);
}

int gzip_measure(const struct gzip_bytes *bytes, const atomic_bool *stop, uint64_t *size) {
	struct unpacking *u = unpacking_new(bytes);
	char *buffer = malloc(PIECE);
	int error = u && buffer ? 0 : ENOMEM;
	*size = 0;
	for (ssize_t n = PIECE; !error && n == PIECE;) {
		n = unpack(u, buffer, PIECE);
		if (n == -1) error = errno;
		else *size += (uint64_t)n;
		if (atomic_load(stop)) error = ECANCELED;
	}
	free(buffer);
	unpacking_free(u);
	return error;
}

/* --- for one who receives it --- */

struct gzip_reader {
	struct gzip_bytes bytes;
	iob_release *release;
	void *owner;
	struct unpacking *unpacking; /* NULL: nothing has been asked for */
};

struct gzip_reader *gzip_reader_new(const struct gzip_bytes *bytes, iob_release *release, void *owner) {
	struct gzip_reader *r = calloc(1, sizeof *r);
	if (r) *r = (struct gzip_reader){.bytes = *bytes, .release = release, .owner = owner};
	else release(owner);
	return r;
}

ssize_t gzip_reader_fill(void *reader, char *buffer, size_t size) {
	struct gzip_reader *r = reader;
	if (!r->unpacking && !(r->unpacking = unpacking_new(&r->bytes))) {
		errno = ENOMEM;
		return -1;
	}
	return unpack(r->unpacking, buffer, size);
}

void gzip_reader_free(void *reader) {
	struct gzip_reader *r = reader;
	unpacking_free(r->unpacking);
	r->release(r->owner);
	free(r);
}
