/* log.c - see log.h. A worker and the thread meet once a batch, to swap two buffers under a mutex that is never held
 * while writing. */
#include "gatling/log/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NOTE_MAX = 64 }; /* bytes of the line about dropped ones */

struct batch {
	char *text; /* LOG_BATCH bytes */
	size_t length;
};

struct log_lines {
	struct log *log;
	struct batch filling; /* the worker's */
	struct batch handed;  /* the thread's while its length is not 0; guarded by the mutex */
	atomic_ulong dropped; /* lines, since the last one that said so; counted by both */
	int64_t due_ms;       /* when `filling` is to be handed over */
	struct log_lines *next;
};

struct log {
	/* the thread's */
	struct log_file file;
	bool json;
	char *rest;                /* LOG_BATCH bytes: of a line of which the start is out, what found no room */
	size_t rest_length;        /* 0: of none */
	struct log_lines *rest_of; /* whose line that is */
	/* guarded by the mutex */
	bool reopen, stopping, ended, abandoned;
	struct log_lines *all;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
};

struct log_lines *log_lines_new(struct log *log) {
	struct log_lines *l = calloc(1, sizeof *l);
	if (!l) return NULL;
	l->log = log;
	l->filling.text = malloc(LOG_BATCH);
	l->handed.text = malloc(LOG_BATCH);
	if (!l->filling.text || !l->handed.text) {
		free(l->filling.text);
		free(l->handed.text);
		free(l);
		return NULL;
	}
	pthread_mutex_lock(&log->mutex);
	l->next = log->all;
	log->all = l;
	pthread_mutex_unlock(&log->mutex);
	return l;
}

static void append(struct log_lines *l, struct slice text) {
	memcpy(l->filling.text + l->filling.length, text.at, text.length);
	l->filling.length += text.length;
}

void log_line(struct log_lines *l, struct slice start, struct slice end, int64_t now_ms) {
	size_t length = start.length + end.length + 1;
	if (l->filling.length + length > LOG_BATCH) log_flush(l, now_ms);
	if (l->filling.length + length > LOG_BATCH) {
		atomic_fetch_add(&l->dropped, 1);
		return;
	}
	size_t before = l->filling.length;
	if (before == 0) l->due_ms = now_ms + LOG_DELAY_MS;
	append(l, start);
	append(l, end);
	l->filling.text[l->filling.length++] = '\n';
	if (before <= LOG_BATCH / 2 && l->filling.length > LOG_BATCH / 2) log_flush(l, now_ms);
}

int log_due(const struct log_lines *l, int64_t now_ms) {
	if (l->filling.length == 0) return -1;
	int64_t left = l->due_ms - now_ms;
	return left > 0 ? (int)left : 0;
}

void log_flush(struct log_lines *l, int64_t now_ms) {
	struct log *log = l->log;
	pthread_mutex_lock(&log->mutex);
	if (l->handed.length == 0 && l->filling.length) {
		struct batch empty = l->handed;
		l->handed = l->filling;
		l->filling = empty;
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->mutex);
	l->due_ms = now_ms + LOG_DELAY_MS; /* if the thread was busy */
}

/* --- the thread --- */

/* write(2) of all of it, whatever mode the descriptor is in. The bytes written: fewer when no more can be. */
static size_t write_text(int fd, const char *text, size_t length) {
	size_t written = 0;
	while (written < length) {
		ssize_t n = write(fd, text + written, length - written);
		if (n > 0) {
			written += (size_t)n;
		} else if (n == -1 && errno == EAGAIN) {
			struct pollfd p = {.fd = fd, .events = POLLOUT};
			(void)poll(&p, 1, -1);
		} else if (n != -1 || errno != EINTR) {
			break;
		}
	}
	return written;
}

/* Nothing may follow the start of a line but its rest. */
static bool write_rest(struct log *log) {
	size_t n = write_text(log->file.fd, log->rest, log->rest_length);
	log->rest_length -= n;
	if (n) memmove(log->rest, log->rest + n, log->rest_length);
	return log->rest_length == 0;
}

static void keep_rest(struct log_lines *l, const char *rest, size_t length) {
	memcpy(l->log->rest, rest, length);
	l->log->rest_length = length;
	l->log->rest_of = l;
}

/* Writes lines, each with its newline; how many could not be. */
static unsigned long write_lines(struct log_lines *l, const char *text, size_t length) {
	size_t written = write_rest(l->log) ? write_text(l->log->file.fd, text, length) : 0;
	if (written && text[written - 1] != '\n') {
		const char *start = text + written, *newline = memchr(start, '\n', length - written);
		size_t rest = (size_t)(newline + 1 - start);
		keep_rest(l, start, rest);
		written += rest;
	}
	unsigned long lost = 0;
	for (size_t i = written; i < length; i++) lost += text[i] == '\n';
	return lost;
}

static void write_note(struct log_lines *l) {
	char note[NOTE_MAX];
	unsigned long dropped = atomic_exchange(&l->dropped, 0);
	if (!dropped) return;
	int n = l->log->json ? snprintf(note, sizeof note, "{\"dropped\":%lu}\n", dropped)
						 : snprintf(note, sizeof note, "# %lu log lines dropped\n", dropped);
	if (write_lines(l, note, (size_t)n)) atomic_fetch_add(&l->dropped, dropped);
}

/* And then, since there is room, what has been dropped. */
static void write_batch(struct log_lines *l, const struct batch *b) {
	unsigned long lost = write_lines(l, b->text, b->length);
	if (lost) atomic_fetch_add(&l->dropped, lost);
	else write_note(l);
}

/* Writes the batches that have been handed over, one of each worker; false: there is none. Called and left with the
 * mutex locked. */
static bool write_handed(struct log *log) {
	bool any = false;
	for (struct log_lines *l = log->all; l; l = l->next) {
		if (!l->handed.length) continue;
		struct batch b = l->handed;
		any = true;
		pthread_mutex_unlock(&log->mutex);
		write_batch(l, &b);
		pthread_mutex_lock(&log->mutex);
		l->handed.length = 0;
	}
	return any;
}

static bool same_file(const struct stat *a, const struct stat *b) {
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A line of which the old file has the start ends there, or not at all. */
static void open_again(struct log *log) {
	struct stat old = {0}, new = {0};
	(void)write_rest(log);
	(void)fstat(log->file.fd, &old); /* both succeed on what is open */
	if (log_file_open(&log->file) == -1) {
		fprintf(stderr, "gatling: cannot open %s again, going on with the old file: %s\n", log->file.path,
				strerror(errno));
		return;
	}
	(void)fstat(log->file.fd, &new);
	if (!log->rest_length || same_file(&old, &new)) return;
	log->rest_length = 0;
	atomic_fetch_add(&log->rest_of->dropped, 1);
}

static void log_free(struct log *log) {
	while (log->all) {
		struct log_lines *l = log->all;
		log->all = l->next;
		free(l->filling.text);
		free(l->handed.text);
		free(l);
	}
	log_file_close(&log->file);
	free(log->rest);
	free(log);
}

static void *run(void *argument) {
	struct log *log = argument;
	pthread_mutex_lock(&log->mutex);
	while (true) {
		bool reopen = log->reopen; /* as of now: what has been handed over before belongs to the old file */
		log->reopen = false;
		bool wrote = write_handed(log);
		if (reopen) {
			pthread_mutex_unlock(&log->mutex);
			open_again(log);
			pthread_mutex_lock(&log->mutex);
		} else if (!wrote && log->stopping) {
			break;
		} else if (!wrote && !log->reopen) {
			pthread_cond_wait(&log->changed, &log->mutex);
		}
	}
	pthread_mutex_unlock(&log->mutex);
	/* the workers have ended: what they were still filling is the thread's */
	for (struct log_lines *l = log->all; l; l = l->next) write_batch(l, &l->filling);
	pthread_mutex_lock(&log->mutex);
	log->ended = true;
	bool abandoned = log->abandoned;
	pthread_cond_broadcast(&log->changed);
	pthread_mutex_unlock(&log->mutex);
	if (abandoned) log_free(log);
	return NULL;
}

struct log *log_start(const struct log_file *file, bool json) {
	struct log *log = calloc(1, sizeof *log);
	if (!log || !(log->rest = malloc(LOG_BATCH))) {
		free(log);
		return NULL;
	}
	log->file = *file;
	log->json = json;
	pthread_mutex_init(&log->mutex, NULL);
	pthread_cond_init(&log->changed, NULL);
	int error = pthread_create(&log->thread, NULL, run, log);
	if (!error) return log;
	free(log->rest);
	free(log);
	errno = error;
	return NULL;
}

void log_reopen(struct log *log) {
	if (!log->file.opener) return;
	pthread_mutex_lock(&log->mutex);
	log->reopen = true;
	pthread_cond_broadcast(&log->changed);
	pthread_mutex_unlock(&log->mutex);
}

/* Waits for the thread until the wall clock says `until`; false: it hangs in a write. */
static bool wait_ended(struct log *log, const struct timespec *until) {
	int error = 0;
	while (!log->ended && error != ETIMEDOUT) error = pthread_cond_timedwait(&log->changed, &log->mutex, until);
	return log->ended;
}

void log_stop(struct log *log) {
	if (!log) return;
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOG_STOP_S;
	pthread_mutex_lock(&log->mutex);
	log->stopping = true;
	pthread_cond_broadcast(&log->changed);
	log->abandoned = !wait_ended(log, &until);
	if (log->abandoned) pthread_detach(log->thread); /* it frees what it uses if it ever gets on */
	bool abandoned = log->abandoned;
	pthread_mutex_unlock(&log->mutex);
	if (abandoned) return;
	pthread_join(log->thread, NULL);
	log_free(log);
}
