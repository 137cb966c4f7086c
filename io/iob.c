/* iob.c - see iob.h. Copied bytes live in one growing arena, so parts refer to them by offset; neighbours join. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/iob.h"
#include "io/mechanism.h"

enum { INLINE_PARTS = 4, INLINE_ARENA = 512, PARTS_KEPT = 64, ARENA_KEPT = 16 * 1024 };

enum part_kind { PART_COPY, PART_BUFFER, PART_FILE };

struct part {
	enum part_kind kind;
	int file;
	const char *buffer; /* PART_BUFFER */
	off_t offset;       /* PART_FILE: in the file; PART_COPY: in the arena */
	uint64_t length;    /* still to be sent, never 0 */
	iob_release *release;
	void *owner;
};

struct iob {
	struct part *part; /* those from first to end are to be sent */
	size_t first, end, part_size;
	char *arena;
	size_t arena_used, arena_size;
	uint64_t left;
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
	return b;
}

static void release_part(const struct part *p) {
	if (p->release) p->release(p->owner);
}

/* Back to the inline blocks. */
static void shrink(iob *b) {
	if (b->part != b->inline_part) free(b->part);
	if (b->arena != b->inline_arena) free(b->arena);
	b->part = b->inline_part;
	b->part_size = INLINE_PARTS;
	b->arena = b->inline_arena;
	b->arena_size = INLINE_ARENA;
}

/* What a large batch has grown to is not kept for the small ones that follow. */
void iob_reset(iob *b) {
	while (b->first < b->end) release_part(&b->part[b->first++]);
	b->first = b->end = b->arena_used = 0;
	b->left = 0;
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

/* A bigger copy of a block that may be the inline one. */
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

int iob_addfile(iob *b, int file, off_t offset, uint64_t length, iob_release *release, void *owner) {
	struct part p = {
		.kind = PART_FILE, .file = file, .offset = offset, .length = length, .release = release, .owner = owner};
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
	/* iob_commit() must not fail: see to it that it finds a part */
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
	memcpy(room, buffer, length);
	iob_commit(b, length);
	return 0;
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

/* Memory parts from the front, until a file, the limit of an io_sendfile() head or most, which is used up. */
static int gather(const iob *b, struct iovec *vector, uint64_t *most) {
	int n = 0;
	for (size_t i = b->first; i < b->end && n < IO_HEAD_PARTS && *most; i++) {
		const struct part *p = &b->part[i];
		if (p->kind == PART_FILE) break;
		const char *at = p->kind == PART_COPY ? b->arena + p->offset : p->buffer;
		uint64_t length = p->length < *most ? p->length : *most;
		vector[n++] = (struct iovec){.iov_base = (char *)at, .iov_len = (size_t)length};
		*most -= length;
	}
	return n;
}

enum iob_result iob_send(io_loop *loop, int fd, iob *b, uint64_t most, enum io_rest last, uint64_t *sent) {
	while (b->left) {
		if (!most) return IOB_AGAIN;
		struct iovec vector[IO_HEAD_PARTS];
		uint64_t rest = most;
		int n = gather(b, vector, &rest);
		const struct part *next = &b->part[b->first + (size_t)n];
		ssize_t r;
		if (rest && next < b->part + b->end && next->kind == PART_FILE) {
			uint64_t length = next->length < rest ? next->length : rest;
			if (!io_in_memory(loop, fd, next->file, next->offset, length, next->length)) return IOB_AGAIN;
			r = io_sendfile(loop, fd, vector, n, next->file, next->offset, (size_t)length);
		} else {
			r = io_trywritev(loop, fd, vector, n, next < b->part + b->end ? IO_MORE : last);
		}
		if (r == -1) return errno == EAGAIN ? IOB_AGAIN : IOB_FAILED;
		if (r == 0) {
			errno = EIO;
			return IOB_FAILED;
		}
		most -= (uint64_t)r;
		*sent += (uint64_t)r;
		advance(b, (uint64_t)r);
	}
	return IOB_DONE;
}

/* From the first part alone; as iob_take(). */
static ssize_t take_part(io_loop *loop, int fd, const struct part *p, const char *arena, void *buffer, size_t length) {
	if (p->kind != PART_FILE) {
		memcpy(buffer, p->kind == PART_COPY ? arena + p->offset : p->buffer, length);
		return (ssize_t)length;
	}
	if (!io_in_memory(loop, fd, p->file, p->offset, length, p->length)) {
		errno = EAGAIN;
		return -1;
	}
	ssize_t n;
	do n = pread(p->file, buffer, length, p->offset);
	while (n == -1 && errno == EINTR);
	if (n == 0) errno = EIO;
	return n == 0 ? -1 : n;
}

ssize_t iob_take(io_loop *loop, int fd, iob *b, void *buffer, size_t length) {
	size_t taken = 0;
	while (b->left && taken < length) {
		const struct part *p = &b->part[b->first];
		size_t want = p->length < length - taken ? (size_t)p->length : length - taken;
		ssize_t n = take_part(loop, fd, p, b->arena, (char *)buffer + taken, want);
		if (n == -1) return taken && errno == EAGAIN ? (ssize_t)taken : -1;
		taken += (size_t)n;
		advance(b, (uint64_t)n);
	}
	return (ssize_t)taken;
}
