/* log.c - see log.h. A worker and the thread meet once a batch, to swap two buffers under a mutex that is never held
 * while writing. */
#include "gatling/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	atomic_ulong dropped; /* lines, since the last one that said so */
	int64_t due_ms;       /* when `filling` is to be handed over */
	struct log_lines *next;
};

struct log {
	int fd;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool stopping, ended, abandoned;
	struct log_lines *all;
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

static void append(struct log_lines *l, const char *line, size_t length) {
	memcpy(l->filling.text + l->filling.length, line, length);
	l->filling.length += length;
	l->filling.text[l->filling.length++] = '\n';
}

static void append_note(struct log_lines *l) {
	char note[NOTE_MAX];
	append(l, note, (size_t)snprintf(note, sizeof note, "# %lu log lines dropped", atomic_exchange(&l->dropped, 0)));
}

/* false: there is no room for it and a note about what was dropped before. */
static bool room(struct log_lines *l, size_t length) { return l->filling.length + length + 1 + NOTE_MAX <= LOG_BATCH; }

void log_line(struct log_lines *l, const char *line, size_t length, int64_t now_ms) {
	if (!room(l, length)) log_flush(l, now_ms);
	if (!room(l, length)) {
		atomic_fetch_add(&l->dropped, 1);
		return;
	}
	size_t before = l->filling.length;
	if (before == 0) l->due_ms = now_ms + LOG_DELAY_MS;
	append(l, line, length);
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
		if (l->dropped) append_note(l);
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->mutex);
	l->due_ms = now_ms + LOG_DELAY_MS; /* for the note, or if the thread was busy */
}

/* write(2) of a batch, whatever mode the descriptor is in. Lines that cannot be written are dropped ones. */
static void write_batch(struct log_lines *l, const struct batch *b) {
	const char *text = b->text;
	size_t length = b->length;
	while (length) {
		ssize_t n = write(l->log->fd, text, length);
		if (n > 0) {
			text += n;
			length -= (size_t)n;
		} else if (n == -1 && errno == EAGAIN) {
			struct pollfd p = {.fd = l->log->fd, .events = POLLOUT};
			(void)poll(&p, 1, -1);
		} else if (n != -1 || errno != EINTR) {
			for (size_t i = 0; i < length; i++)
				if (text[i] == '\n') atomic_fetch_add(&l->dropped, 1);
			return;
		}
	}
}

/* Writes one batch that has been handed over; false: there is none. Called and left with the mutex locked. */
static bool write_one(struct log *log) {
	struct log_lines *l = log->all;
	while (l && !l->handed.length) l = l->next;
	if (!l) return false;
	struct batch b = l->handed;
	pthread_mutex_unlock(&log->mutex);
	write_batch(l, &b);
	pthread_mutex_lock(&log->mutex);
	l->handed.length = 0;
	return true;
}

static void log_free(struct log *log) {
	while (log->all) {
		struct log_lines *l = log->all;
		log->all = l->next;
		free(l->filling.text);
		free(l->handed.text);
		free(l);
	}
	free(log);
}

static void *run(void *argument) {
	struct log *log = argument;
	pthread_mutex_lock(&log->mutex);
	while (true) {
		if (write_one(log)) continue;
		if (log->stopping) break;
		pthread_cond_wait(&log->changed, &log->mutex);
	}
	pthread_mutex_unlock(&log->mutex);
	/* the workers have ended: what they were still filling is the thread's */
	for (struct log_lines *l = log->all; l; l = l->next) {
		if (l->dropped) append_note(l);
		write_batch(l, &l->filling);
	}
	pthread_mutex_lock(&log->mutex);
	log->ended = true;
	bool abandoned = log->abandoned;
	pthread_cond_broadcast(&log->changed);
	pthread_mutex_unlock(&log->mutex);
	if (abandoned) log_free(log);
	return NULL;
}

struct log *log_start(int fd) {
	struct log *log = calloc(1, sizeof *log);
	if (!log) return NULL;
	log->fd = fd;
	pthread_mutex_init(&log->mutex, NULL);
	pthread_cond_init(&log->changed, NULL);
	int error = pthread_create(&log->thread, NULL, run, log);
	if (!error) return log;
	free(log);
	errno = error;
	return NULL;
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
