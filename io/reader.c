/* reader.c - a thread of the loop that reads parts of files into the page cache, so that the loop never waits for a
 * disk. One at a time, in windows of megabytes: downloads that compete read the disk in long runs. A descriptor whose
 * file is being read counts as not ready for writing; when it is handed out again, its file is looked at anew, so that
 * a report too many does no harm, also to another owner of the number. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "io/mechanism.h"

enum { NOBODY = -1 }; /* a request's fd that has been closed */

struct request {
	int fd, file;
	off_t offset, end;
	bool waits; /* in the queue of those that are asked for */
	struct request *next, *previous;
};

struct queue {
	struct request *first, *last;
};

enum { PIECE = 128 * 1024 }; /* bytes that POSIX_FADV_WILLNEED is sure to start reading at once */

struct io_reader {
	io_loop *loop;
	pthread_t thread;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t changed;
	struct queue asked, done;
	struct waiting { /* by descriptor */
		struct request *request;
	} * of;   /* that which it waits for */
	int size; /* of that table */
	bool stopping;
	char piece[PIECE]; /* the thread's */
};

static void push(struct queue *q, struct request *r) {
	r->next = NULL;
	r->previous = q->last;
	if (q->last) q->last->next = r;
	else q->first = r;
	q->last = r;
}

static void unlink_request(struct queue *q, struct request *r) {
	if (r->previous) r->previous->next = r->next;
	else q->first = r->next;
	if (r->next) r->next->previous = r->previous;
	else q->last = r->previous;
}

static struct request *pop(struct queue *q) {
	struct request *r = q->first;
	if (!r) return NULL;
	q->first = r->next;
	if (q->first) q->first->previous = NULL;
	else q->last = NULL;
	return r;
}

#ifdef __linux__
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

enum { READER_NICE = 19 }; /* it takes what a loop leaves of its processor: that has little to do, but at once */

/* preadv2(2) takes 0.12 us. cachestat(2) takes 3 us for 2 MB and is refused, as the truth is by mincore(2), to who
 * could not write the file. */
static bool in_memory(int file, off_t offset) {
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	return preadv2(file, &part, 1, offset, RWF_NOWAIT) != -1 || errno != EAGAIN;
}

/* Starts reading the window as a whole, then waits for it, by copying it: that takes no descriptor, which a server that
 * is full has not got. The kernel's own reading ahead is turned off for the file, since it would be the loop that
 * starts it, for milliseconds where that is set to megabytes. */
static void read_in(struct io_reader *reader, const struct request *r) {
	(void)posix_fadvise(r->file, 0, 0, POSIX_FADV_RANDOM);
	for (off_t at = r->offset; at < r->end; at += PIECE)
		(void)posix_fadvise(r->file, at, r->end - at < PIECE ? r->end - at : PIECE, POSIX_FADV_WILLNEED);
	ssize_t n = 1;
	for (off_t at = r->offset; at < r->end && n > 0; at += n)
		n = pread(r->file, reader->piece, r->end - at < PIECE ? (size_t)(r->end - at) : PIECE, at);
}

static void *run(void *argument) {
	struct io_reader *reader = argument;
	(void)setpriority(PRIO_PROCESS, 0, READER_NICE); /* of this thread alone, on Linux */
	pthread_mutex_lock(&reader->mutex);
	while (!reader->stopping) {
		struct request *r = pop(&reader->asked);
		if (!r) {
			pthread_cond_wait(&reader->changed, &reader->mutex);
			continue;
		}
		r->waits = false;
		pthread_mutex_unlock(&reader->mutex);
		read_in(reader, r);
		pthread_mutex_lock(&reader->mutex);
		push(&reader->done, r);
		pthread_mutex_unlock(&reader->mutex);
		io_wake(reader->loop);
		pthread_mutex_lock(&reader->mutex);
	}
	pthread_mutex_unlock(&reader->mutex);
	return NULL;
}

#else /* nobody asks: what is not in memory is waited for */

static bool in_memory(int file, off_t offset) {
	(void)file, (void)offset;
	return true;
}

static void *run(void *argument) { return argument; }

#endif

static struct io_reader *reader_new(io_loop *loop) {
	struct io_reader *reader = calloc(1, sizeof *reader);
	if (!reader) return NULL;
	reader->loop = loop;
	pthread_mutex_init(&reader->mutex, NULL);
	pthread_cond_init(&reader->changed, NULL);
	if (pthread_create(&reader->thread, NULL, run, reader) == 0) return reader;
	free(reader);
	return NULL;
}

/* Room for a descriptor in the table. false: ENOMEM. */
static bool table_grow(struct io_reader *reader, int fd) {
	int size = reader->size ? reader->size : 64;
	if (fd < reader->size) return true;
	while (size <= fd) size *= 2;
	struct waiting *of = realloc(reader->of, (size_t)size * sizeof *of);
	if (!of) return false;
	for (int i = reader->size; i < size; i++) of[i].request = NULL;
	reader->of = of;
	reader->size = size;
	return true;
}

bool io_in_memory(io_loop *loop, int fd, int file, off_t offset, uint64_t now, uint64_t length) {
	struct io_entry *e = &loop->entry[fd];
	bool read = e->read;
	if (e->reading) return false;
	e->read = false;
	/* Between them lies what was read with them. Who begins at the front has seldom been overtaken. */
	if (read || (in_memory(file, offset + (off_t)now - 1) && (offset == 0 || in_memory(file, offset)))) return true;
	if (!loop->reader) loop->reader = reader_new(loop);
	struct request *r = loop->reader && table_grow(loop->reader, fd) ? malloc(sizeof *r) : NULL;
	if (!r) return true;
	if (length > IO_READ_WINDOW) length = IO_READ_WINDOW;
	*r = (struct request){.fd = fd, .file = file, .offset = offset, .end = offset + (off_t)length, .waits = true};
	loop->reader->of[fd].request = r;
	e->reading = true;
	pthread_mutex_lock(&loop->reader->mutex);
	push(&loop->reader->asked, r);
	pthread_cond_signal(&loop->reader->changed);
	pthread_mutex_unlock(&loop->reader->mutex);
	return false;
}

/* Nobody is to fill the queue by asking and going away, nor to have the next owner of the number told. O(1): thousands
 * may go at once. */
void io_read_forget(struct io_reader *reader, int fd) {
	struct request *r = reader->of[fd].request;
	if (!r) return;
	reader->of[fd].request = NULL;
	pthread_mutex_lock(&reader->mutex);
	bool waits = r->waits;
	if (waits) unlink_request(&reader->asked, r);
	else r->fd = NOBODY;
	pthread_mutex_unlock(&reader->mutex);
	if (waits) free(r);
}

void io_reader_collect(struct io_reader *reader) {
	pthread_mutex_lock(&reader->mutex);
	for (struct request *r; (r = pop(&reader->done));) {
		if (r->fd != NOBODY) {
			reader->of[r->fd].request = NULL;
			io_has_read(reader->loop, r->fd);
		}
		free(r);
	}
	pthread_mutex_unlock(&reader->mutex);
}

static void queue_free(struct queue *q) {
	for (struct request *r; (r = pop(q));) free(r);
}

void io_reader_free(struct io_reader *reader) {
	if (!reader) return;
	pthread_mutex_lock(&reader->mutex);
	reader->stopping = true;
	pthread_cond_signal(&reader->changed);
	pthread_mutex_unlock(&reader->mutex);
	pthread_join(reader->thread, NULL);
	queue_free(&reader->asked);
	queue_free(&reader->done);
	free(reader->of);
	pthread_mutex_destroy(&reader->mutex);
	pthread_cond_destroy(&reader->changed);
	free(reader);
}
