/* iob.c - see iob.h. Copied bytes are in one arena that may move when it grows: parts refer to them by offset. Copies
 * that follow each other make up one part. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/iob.h"
#include "io/reader.h"
#include "io/window.h"

enum { INLINE_PARTS = 4, INLINE_ARENA = 512, PARTS_KEPT = 64, ARENA_KEPT = 16 * 1024 };

/* The last bytes of a mapped file are read, not mapped: so they are in memory before the file is looked at. */
enum { FILE_END = 4096 };

_Static_assert(sizeof((io_loop *)NULL)->piece == IOB_FILE_PIECE, "");

enum part_kind { PART_COPY, PART_BUFFER, PART_FILE, PART_SOURCE }; /* the first two are memory */

struct part {
	enum part_kind kind;
	int file;
	const char *buffer;       /* PART_BUFFER; PART_FILE: the whole file mapped, or NULL */
	off_t offset;             /* PART_FILE: in the file; PART_COPY: in the arena; PART_SOURCE: in all that it makes */
	uint64_t length;          /* still to be sent, never 0 */
	iob_unchanged *unchanged; /* PART_FILE: see struct iob_file */
	uint64_t copied;          /* PART_FILE: so many bytes at its end */
	io_tasks *readers;        /* PART_FILE: as of struct iob_file, */
	struct io_window *window; /* and what they have read; NULL: nothing yet; also of other kinds */
	iob_release *release;
	void *owner; /* PART_SOURCE: struct source */
};

struct source {
	iob_fill *fill;
	iob_release *release;
	void *owner;
	size_t memory; /* that the owner holds once the first byte has been made */
	uint64_t made; /* bytes */
	char *piece;   /* bytes made ahead, or NULL; its last byte is the last one made */
	size_t piece_length;
	int error; /* of fill; 0: none */
};

struct iob {
	struct part *part; /* those from first up to end are still to be sent */
	size_t first, end, part_size;
	char *arena;
	size_t arena_used, arena_size;
	uint64_t left;
	int64_t full_ms; /* since when the socket has been full; 0: it is not */
	struct part inline_part[INLINE_PARTS];
	char inline_arena[INLINE_ARENA];
};

iob *iob_new(void) {
	iob *b = malloc(sizeof *b);
	if (!b) return NULL;
	b->part = b->inline_part;
	b->part_size = INLINE_PARTS;
	b->arena = b->inline_arena;
	b->arena_size = INLINE_ARENA;
	b->first = b->end = b->arena_used = 0;
	b->left = 0;
	b->full_ms = 0;
	return b;
}

static void release_part(const struct part *p) {
	if (p->window) io_window_free(p->window);
	if (p->release) p->release(p->owner);
}

/* Frees the blocks that are not inline. */
static void shrink(iob *b) {
	if (b->part != b->inline_part) free(b->part);
	if (b->arena != b->inline_arena) free(b->arena);
	b->part = b->inline_part;
	b->part_size = INLINE_PARTS;
	b->arena = b->inline_arena;
	b->arena_size = INLINE_ARENA;
}

/* The memory of a large batch is not kept for the small ones that follow. */
void iob_reset(iob *b) {
	if (!b->end && !b->arena_used) return;
	while (b->first < b->end) release_part(&b->part[b->first++]);
	b->first = b->end = b->arena_used = 0;
	b->left = 0;
	b->full_ms = 0;
	if (b->part_size > PARTS_KEPT || b->arena_size > ARENA_KEPT) shrink(b);
}

void iob_free(iob *b) {
	if (!b) return;
	iob_reset(b);
	shrink(b);
	free(b);
}

uint64_t iob_bytesleft(const iob *b) { return b->left; }
size_t iob_parts(const iob *b) { return b->end - b->first; }

static size_t source_memory(const struct source *s) {
	return (s->made ? s->memory : 0) + (s->piece ? (size_t)IOB_SOURCE_PIECE : 0);
}

size_t iob_memory(const iob *b) {
	size_t n = sizeof *b;
	if (b->part != b->inline_part) n += b->part_size * sizeof *b->part;
	if (b->arena != b->inline_arena) n += b->arena_size;
	size_t i = b->first;
	while (i < b->end && b->part[i].kind < PART_FILE) i++;
	if (i == b->end) return n;
	/* only the first file or source can have begun */
	if (b->part[i].kind == PART_SOURCE) n += source_memory(b->part[i].owner);
	else if (b->part[i].window) n += io_window_memory(b->part[i].window);
	return n;
}

/* Returns a block with a new size that replaces the old one, which may be inline. NULL: ENOMEM. */
static void *grown(void *old, void *inline_block, size_t used, size_t size) {
	if (old != inline_block) return realloc(old, size);
	void *block = malloc(size);
	if (block) memcpy(block, old, used);
	return block;
}

static struct part *append(iob *b, const struct part *p) {
	if (b->end == b->part_size) {
		struct part *part = NULL;
		if (2 * b->part_size <= IOB_PART_LIMIT)
			part = grown(b->part, b->inline_part, b->end * sizeof *p, 2 * b->part_size * sizeof *p);
		if (!part) {
			errno = ENOMEM;
			return NULL;
		}
		b->part = part;
		b->part_size *= 2;
	}
	b->left += p->length;
	b->part[b->end] = *p;
	return &b->part[b->end++];
}

static int append_or_release(iob *b, const struct part *p) {
	if (p->length && append(b, p)) return 0;
	release_part(p);
	return p->length ? -1 : 0;
}

int iob_addbuf(iob *b, const void *buffer, size_t length, iob_release *release, void *owner) {
	struct part p = {.kind = PART_BUFFER, .buffer = buffer, .length = length, .release = release, .owner = owner};
	return append_or_release(b, &p);
}

int iob_addfile(iob *b, struct iob_file file, off_t offset, uint64_t length, iob_release *release, void *owner) {
	struct part p = {.kind = PART_FILE,
					 .file = file.fd,
					 .buffer = file.map,
					 .unchanged = file.unchanged,
					 .copied = file.copied ? IOB_FILE_COPIED : 0,
					 .readers = file.readers,
					 .offset = offset,
					 .length = length,
					 .release = release,
					 .owner = owner};
	return append_or_release(b, &p);
}

static void release_source(void *owner) {
	struct source *s = owner;
	if (s->release) s->release(s->owner);
	free(s->piece);
	free(s);
}

int iob_addsource(iob *b, uint64_t length, iob_fill *fill, iob_release *release, void *owner, size_t memory) {
	struct source *s = length ? malloc(sizeof *s) : NULL;
	if (!s) {
		if (release) release(owner);
		return length ? -1 : 0;
	}
	*s = (struct source){.fill = fill, .release = release, .owner = owner, .memory = memory};
	struct part p = {.kind = PART_SOURCE, .length = length, .release = release_source, .owner = s};
	return append_or_release(b, &p);
}

char *iob_reserve(iob *b, size_t length) {
	if (length > IOB_COPY_LIMIT - b->arena_used) {
		errno = ENOMEM;
		return NULL;
	}
	if (length > b->arena_size - b->arena_used) {
		size_t size = 2 * b->arena_size;
		while (size - b->arena_used < length) size *= 2;
		char *arena = grown(b->arena, b->inline_arena, b->arena_used, size);
		if (!arena) return NULL;
		b->arena = arena;
		b->arena_size = size;
	}
	/* iob_commit() cannot fail: it needs a part */
	struct part none = {.kind = PART_COPY, .offset = (off_t)b->arena_used};
	if (b->first == b->end || b->part[b->end - 1].kind != PART_COPY) {
		if (!append(b, &none)) return NULL;
	}
	return b->arena + b->arena_used;
}

void iob_commit(iob *b, size_t length) {
	struct part *last = &b->part[b->end - 1];
	last->length += length;
	b->arena_used += length;
	b->left += length;
	if (!last->length) b->end--;
}

int iob_addcopy(iob *b, const void *buffer, size_t length) {
	char *room = iob_reserve(b, length);
	if (!room) return -1;
	if (length) memcpy(room, buffer, length);
	iob_commit(b, length);
	return 0;
}

/* Returns the bytes of a part in memory. */
static const char *memory_of(const struct part *p, const char *arena) {
	return p->kind == PART_COPY ? arena + p->offset : p->buffer;
}

static void advance(iob *b, uint64_t sent) {
	b->left -= sent;
	while (sent) {
		struct part *p = &b->part[b->first];
		uint64_t n = sent < p->length ? sent : p->length;
		if (p->kind == PART_BUFFER) p->buffer += n;
		else p->offset += (off_t)n;
		p->length -= n;
		sent -= n;
		if (!p->length) {
			release_part(p);
			b->first++;
		}
	}
	if (!b->left) iob_reset(b);
}

/* Makes bytes of a source. Returns how many, or -1 with errno, as do all later calls then. */
static ssize_t make(struct source *s, char *buffer, size_t size) {
	if (!s->error) {
		ssize_t n = s->fill(s->owner, buffer, size);
		if (n > 0) {
			s->made += (uint64_t)n;
			return n;
		}
		s->error = n == 0 || errno == EAGAIN ? EIO : errno; /* EAGAIN: no event would say when to try again */
	}
	errno = s->error;
	return -1;
}

/* Returns the bytes that have been made and not sent, if any. */
static struct iovec made_ahead(const struct part *p) {
	const struct source *s = p->owner;
	size_t length = (size_t)(s->made - (uint64_t)p->offset);
	return (struct iovec){.iov_base = length ? s->piece + s->piece_length - length : NULL, .iov_len = length};
}

/* Writes to *piece where the next bytes of a source are, and makes them if there are none. Returns false with errno. */
static bool next_piece(const struct part *p, struct iovec *piece) {
	struct source *s = p->owner;
	*piece = made_ahead(p);
	if (piece->iov_len) return true;
	size_t size = p->length < IOB_SOURCE_PIECE ? (size_t)p->length : IOB_SOURCE_PIECE;
	if (!s->piece && !(s->piece = malloc(IOB_SOURCE_PIECE))) return false;
	ssize_t n = make(s, s->piece, size);
	if (n == -1) return false;
	s->piece_length = (size_t)n;
	*piece = made_ahead(p);
	return true;
}

/* Collects the parts in memory at the front, up to a file, a source, IO_HEAD_PARTS parts, or *most bytes, which are
 * used up. Returns how many parts. */
static int gather(const iob *b, struct iovec *vector, uint64_t *most) {
	int n = 0;
	for (size_t i = b->first; i < b->end && n < IO_HEAD_PARTS && *most; i++) {
		const struct part *p = &b->part[i];
		if (p->kind >= PART_FILE) break;
		const char *at = memory_of(p, b->arena);
		uint64_t length = p->length < *most ? p->length : *most;
		vector[n++] = (struct iovec){.iov_base = (char *)at, .iov_len = (size_t)length};
		*most -= length;
	}
	return n;
}

/* Sends the n parts in memory and up to most bytes of the source behind them; last: as rest of iob_send(). Returns as
 * io_trywritev(). If the source fails, the parts before it are still sent. */
static ssize_t send_source(io_loop *loop, int fd, const iob *b, struct iovec *vector, int n, uint64_t most,
						   enum io_rest last) {
	const struct part *p = &b->part[b->first + (size_t)n];
	struct iovec *piece = &vector[n];
	bool is_last = false;
	if (next_piece(p, piece)) {
		is_last = piece->iov_len == p->length && p + 1 == b->part + b->end && p->length <= most;
		if (piece->iov_len > most) piece->iov_len = (size_t)most;
		n++;
	} else if (n == 0) {
		return -1;
	}
	return io_trywritev(loop, fd, vector, n, is_last ? last : IO_MORE);
}

/* Returns how many bytes at the front of a file are sent by reference. */
static uint64_t referred(const struct part *p) {
	return p->length > p->copied && !p->readers ? p->length - p->copied : 0;
}

/* Returns whether the file of a part is as it was when it was added. */
static bool is_unchanged(const struct part *p) {
	struct stat now;
	return !p->unchanged || (fstat(p->file, &now) == 0 && p->unchanged(p->owner, &now));
}

/* Reads from a file into memory. With the last byte of the part, the file is checked. Returns as io_read_file(), or -1
 * with EIO if the file has changed or is shorter. */
static ssize_t read_file(io_loop *loop, int fd, struct part *p, void *buffer, size_t length) {
	struct stat now;
	const struct io_window_read r = {fd, p->file, p->offset, length, p->length};
	ssize_t n = p->readers ? io_window_read(loop, p->readers, &p->window, &r, buffer, &now)
						   : io_read_file(loop, fd, p->file, p->offset, buffer, length, p->length);
	const bool last = n > 0 && (uint64_t)n == p->length;
	const bool changed = last && (p->readers ? p->unchanged && !p->unchanged(p->owner, &now) : !is_unchanged(p));
	if (n != 0 && !changed) return n;
	errno = EIO;
	return -1;
}

/* Sends the n parts in memory and up to most bytes of the file behind them; last: as rest of iob_send(). Returns as
 * io_trywritev() or io_sendfile(), or -1 with EINPROGRESS while a thread reads the file. If the file fails, the parts
 * before it are still sent. */
static ssize_t send_file(io_loop *loop, int fd, const iob *b, struct iovec *vector, int n, uint64_t most,
						 enum io_rest last) {
	struct part *p = &b->part[b->first + (size_t)n];
	uint64_t reference = referred(p), length = reference ? reference : p->length - FILE_END;
	if (reference || (p->buffer && p->length > IOB_FILE_PIECE)) {
		if (length > most) length = most;
		if (!io_in_memory(loop, fd, p->file, p->offset, length, p->length)) {
			errno = EINPROGRESS;
			return -1;
		}
		if (length == p->length && !is_unchanged(p)) {
			errno = EIO;
			return -1;
		}
		if (reference) return io_sendfile(loop, fd, vector, n, p->file, p->offset, (size_t)length);
		vector[n] = (struct iovec){.iov_base = (char *)p->buffer + p->offset, .iov_len = (size_t)length};
		return io_trywritev(loop, fd, vector, n + 1, IO_MORE);
	}
	length = p->length < most ? p->length : most;
	ssize_t got = read_file(loop, fd, p, loop->piece, length < IOB_FILE_PIECE ? (size_t)length : IOB_FILE_PIECE);
	if (got == -1 && errno == EAGAIN) errno = EINPROGRESS;
	if (got == -1 && (errno == EINPROGRESS || n == 0)) return -1;
	bool ends = got != -1 && (uint64_t)got == p->length && p + 1 == b->part + b->end;
	if (got != -1) vector[n++] = (struct iovec){.iov_base = loop->piece, .iov_len = (size_t)got};
	return io_trywritev(loop, fd, vector, n, ends ? last : IO_MORE);
}

/* Has the end of the file at the front, which may have parts in memory before it, copied if its reader is slow. */
static void copy_for_slow(const io_loop *loop, iob *b) {
	size_t i = b->first;
	if (!b->full_ms || io_now(loop) - b->full_ms < IOB_SLOW_MS) return;
	while (i < b->end && b->part[i].kind < PART_FILE) i++;
	if (i < b->end && b->part[i].copied < IOB_SLOW_COPIED) b->part[i].copied = IOB_SLOW_COPIED;
}

enum iob_result iob_send(io_loop *loop, int fd, iob *b, uint64_t most, enum io_rest last, uint64_t *sent) {
	copy_for_slow(loop, b);
	while (b->left) {
		if (!most) return IOB_AGAIN;
		struct iovec vector[IO_HEAD_PARTS + 1];
		uint64_t rest = most;
		int n = gather(b, vector, &rest);
		const struct part *next = &b->part[b->first + (size_t)n];
		ssize_t r;
		if (rest && next < b->part + b->end && next->kind == PART_FILE) {
			r = send_file(loop, fd, b, vector, n, rest, last);
		} else if (rest && next < b->part + b->end && next->kind == PART_SOURCE) {
			r = send_source(loop, fd, b, vector, n, rest, last);
		} else {
			r = io_trywritev(loop, fd, vector, n, next < b->part + b->end ? IO_MORE : last);
		}
		if (r == -1 && errno == EAGAIN && !b->full_ms) b->full_ms = io_now(loop);
		if (r == -1 && (errno == EAGAIN || errno == EINPROGRESS)) return IOB_AGAIN;
		if (r == -1 && errno != EFAULT) return IOB_FAILED;
		if (r <= 0) { /* EFAULT: a mapped file has become shorter */
			errno = EIO;
			return IOB_FAILED;
		}
		most -= (uint64_t)r;
		*sent += (uint64_t)r;
		advance(b, (uint64_t)r);
		b->full_ms = 0;
	}
	return IOB_DONE;
}

static ssize_t take_source(const struct part *p, char *buffer, size_t length) {
	struct iovec ahead = made_ahead(p);
	if (!ahead.iov_len) return make(p->owner, buffer, length);
	if (length > ahead.iov_len) length = ahead.iov_len;
	memcpy(buffer, ahead.iov_base, length);
	return (ssize_t)length;
}

/* Does what iob_take() does, with the first part alone. */
static ssize_t take_part(io_loop *loop, int fd, struct part *p, const char *arena, void *buffer, size_t length) {
	if (p->kind < PART_FILE) {
		memcpy(buffer, memory_of(p, arena), length);
		return (ssize_t)length;
	}
	if (p->kind == PART_SOURCE) return take_source(p, buffer, length);
	return read_file(loop, fd, p, buffer, length);
}

ssize_t iob_take(io_loop *loop, int fd, iob *b, void *buffer, size_t length) {
	size_t taken = 0;
	while (b->left && taken < length) {
		struct part *p = &b->part[b->first];
		size_t want = p->length < length - taken ? (size_t)p->length : length - taken;
		ssize_t n = take_part(loop, fd, p, b->arena, (char *)buffer + taken, want);
		if (n == -1) return taken && errno == EAGAIN ? (ssize_t)taken : -1;
		taken += (size_t)n;
		advance(b, (uint64_t)n);
	}
	return (ssize_t)taken;
}

const char *iob_front(const iob *b, size_t *length) {
	const struct part *p = &b->part[b->first];
	if (!b->left || p->kind >= PART_FILE) return NULL;
	*length = (size_t)p->length;
	return memory_of(p, b->arena);
}

void iob_drop(iob *b, size_t length) { advance(b, length); }
