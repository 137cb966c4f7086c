/* log.c - see log.h. For each batch, a worker and the thread swap two buffers under a mutex, which is not held while
 * the thread writes. */
#include "gatling/log/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/log/log_sites.h"
#include "gatling/log/log_sink.h"

enum { NOTE_MAX = 64 }; /* bytes of the line about dropped lines */

struct log_queue {
	struct log *log;
	struct log_queue *next;
	/* Lines that were dropped since the log last said so. The worker and the thread count them. */
	atomic_ulong dropped;
	atomic_ulong dropped_ever;
	int64_t due_ms; /* when the worker's batch is to be handed over */
	/* log_say() adds the lines, under the mutex, and the thread takes the batch by itself. */
	bool shared;
	/* The index of the batch that is being filled. The thread owns the other one while it is not empty. Guarded by the
	 * mutex. */
	bool filling;
	struct log_batch {
		size_t length;
		char text[LOG_BATCH];
	} batch[2];
};

struct log {
	/* owned by the thread */
	struct log_sink sink;
	struct log_sites *sites; /* instead of it, or NULL */
	bool json;
	notice_time told; /* when dropped lines may be reported again */
	/* guarded by the mutex */
	bool reopen, stopping, ended, abandoned;
	struct log_queue *all;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
};

struct log_queue *log_queue_new(struct log *log) {
	struct log_queue *l = calloc(1, sizeof *l);
	if (!l) return NULL;
	l->log = log;
	pthread_mutex_lock(&log->mutex);
	l->next = log->all;
	log->all = l;
	pthread_mutex_unlock(&log->mutex);
	return l;
}

/* Reports that lines are dropped, and why. Those of the error log (shared) are reported on stderr. */
static void complain(const struct log_queue *l, const char *reason) {
	char text[NOTICE_TEXT_MAX];
	const char *path = l->log->sink.file.path;
	if (!notice_due(&l->log->told)) return;
	snprintf(text, sizeof text, "cannot write the %slog%s%s: %s: its lines are dropped", l->shared ? "error " : "",
			 path ? " " : "", path ? path : "", reason);
	if (l->shared) notice_of_sink(text);
	else notice_line(LEVEL_ERROR, "%s", text);
}

static void drop(struct log_queue *l, unsigned long lines) {
	atomic_fetch_add(&l->dropped, lines);
	atomic_fetch_add(&l->dropped_ever, lines);
}

unsigned long log_dropped(const struct log_queue *l) { return atomic_load(&l->dropped_ever); }

void log_line(struct log_queue *l, struct slice line, int64_t now_ms) {
	struct log_batch *b = &l->batch[l->filling];
	const size_t length = line.length + 1;
	if (b->length + length > LOG_BATCH) {
		log_flush(l, now_ms);
		b = &l->batch[l->filling];
		if (b->length + length > LOG_BATCH) {
			complain(l, "its reader or disk is too slow");
			drop(l, 1);
			return;
		}
	}
	size_t before = b->length;
	if (before == 0) l->due_ms = now_ms + LOG_DELAY_MS;
	*text_copy(b->text + before, line) = '\n';
	b->length += length;
	if (before <= LOG_BATCH / 2 && b->length > LOG_BATCH / 2) log_flush(l, now_ms);
}

void log_say(struct log_queue *l, struct slice line) {
	pthread_mutex_lock(&l->log->mutex);
	struct log_batch *b = &l->batch[l->filling];
	l->shared = true;
	if (b->length + line.length < LOG_BATCH) {
		*text_copy(b->text + b->length, line) = '\n';
		b->length += line.length + 1;
		pthread_cond_broadcast(&l->log->changed);
	} else {
		drop(l, 1);
	}
	pthread_mutex_unlock(&l->log->mutex);
}

int log_due(const struct log_queue *l, int64_t now_ms) {
	if (l->batch[l->filling].length == 0) return -1;
	int64_t left = l->due_ms - now_ms;
	return left > 0 ? (int)left : 0;
}

void log_flush(struct log_queue *l, int64_t now_ms) {
	struct log *log = l->log;
	pthread_mutex_lock(&log->mutex);
	if (l->batch[!l->filling].length == 0 && l->batch[l->filling].length) {
		l->filling = !l->filling;
		pthread_cond_broadcast(&log->changed);
	}
	pthread_mutex_unlock(&log->mutex);
	l->due_ms = now_ms + LOG_DELAY_MS; /* for the case that the thread was busy */
}

/* --- the thread --- */

/* Writes lines, each with its newline. Returns how many could not be written. */
static unsigned long write_lines(struct log_queue *l, const char *text, size_t length) {
	if (l->log->sites) return log_sites_write(l->log->sites, l, text, length);
	return log_sink_write(&l->log->sink, l, text, length);
}

/* Writes the batch of a queue, and then, if there is room, how many lines were dropped. */
static void write_batch(struct log_queue *l, const struct log_batch *b) {
	char note[NOTE_MAX];
	unsigned long lost = write_lines(l, b->text, b->length);
	if (lost) {
		complain(l, log_file_reason(errno));
		drop(l, lost);
		return;
	}
	unsigned long dropped = atomic_exchange(&l->dropped, 0);
	if (!dropped) return;
	const char *format = l->log->json ? "{\"dropped\":%lu}\n" : "# %lu log lines dropped\n";
	const size_t tab = l->log->sites ? 1 : 0; /* behind the name of no site */
	note[0] = '\t';
	if (write_lines(l, note, tab + (size_t)snprintf(note + tab, sizeof note - 1, format, dropped)))
		atomic_fetch_add(&l->dropped, dropped);
}

/* Writes the batches that were handed over, one of each queue. Returns false if there are none. Called with the mutex
 * locked, which is unlocked during writing. */
static bool write_handed(struct log *log) {
	bool any = false;
	for (struct log_queue *l = log->all; l; l = l->next) {
		if (l->shared && !l->batch[!l->filling].length) l->filling = !l->filling;
		struct log_batch *b = &l->batch[!l->filling];
		if (!b->length) continue;
		any = true;
		pthread_mutex_unlock(&log->mutex);
		write_batch(l, b);
		pthread_mutex_lock(&log->mutex);
		b->length = 0;
	}
	return any;
}

/* Reports that the file could not be opened again. The old error log may no longer be in any directory, so its own
 * problems are also reported on standard error. */
static void complain_of_old_file(const struct log *log, int error) {
	char text[NOTICE_TEXT_MAX];
	/* not that of the file itself, which would be created */
	const char *reason = error == ENOENT ? "its directory does not exist" : log_file_reason(error);
	snprintf(text, sizeof text, "cannot open %s again, going on with the old file: %s", log->sink.file.path, reason);
	notice_line(LEVEL_ERROR, "%s", text);
	if (log->all && log->all->shared) notice_of_sink(text);
}

static void open_again(struct log *log) {
	struct log_queue *lost = NULL;
	if (log->sites) log_sites_reopen(log->sites);
	else if (log_sink_reopen(&log->sink, &lost) == -1) complain_of_old_file(log, errno);
	if (lost) drop(lost, 1);
}

static void log_free(struct log *log) {
	if (log->sites) log_sites_close(log->sites);
	else (void)log_sink_close(&log->sink);
	for (struct log_queue *l; (l = log->all);) {
		log->all = l->next;
		free(l);
	}
	free(log->sites);
	free(log);
}

/* Sets a member and wakes the threads that wait for it. Returns whether the log was abandoned. */
static bool set(struct log *log, bool *member) {
	pthread_mutex_lock(&log->mutex);
	*member = true;
	bool abandoned = log->abandoned;
	pthread_cond_broadcast(&log->changed);
	pthread_mutex_unlock(&log->mutex);
	return abandoned;
}

static void *log_thread(void *argument) {
	struct log *log = argument;
	pthread_mutex_lock(&log->mutex);
	while (true) {
		bool reopen = log->reopen; /* batches handed over before this belong to the old file */
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
	/* the workers have ended: their unfinished batches are the thread's */
	unsigned long dropped = 0;
	for (struct log_queue *l = log->all; l; l = l->next) {
		write_batch(l, &l->batch[l->filling]);
		if (!l->shared) dropped += atomic_load(&l->dropped);
	}
	if (dropped) notice_line(LEVEL_ERROR, "%lu lines of the log were dropped at the end", dropped);
	if (set(log, &log->ended)) log_free(log);
	return NULL;
}

struct log *log_start(const struct log_file *file, bool json) {
	struct log *log = calloc(1, sizeof *log);
	if (!log) return NULL;
	log->sink.file = *file;
	log->json = json;
	if (log_file_is_directory(file) && !(log->sites = log_sites_new(file))) {
		free(log);
		return NULL;
	}
	pthread_mutex_init(&log->mutex, NULL);
	pthread_cond_init(&log->changed, NULL);
	int error = pthread_create(&log->thread, NULL, log_thread, log);
	if (!error) return log;
	free(log->sites);
	free(log);
	errno = error;
	return NULL;
}

void log_reopen(struct log *log) {
	if (log->sink.file.broker) (void)set(log, &log->reopen);
}

void log_stop(struct log *log) {
	if (!log) return;
	struct timespec until;
	int error = 0;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOG_STOP_S;
	(void)set(log, &log->stopping);
	pthread_mutex_lock(&log->mutex);
	while (!log->ended && error != ETIMEDOUT) error = pthread_cond_timedwait(&log->changed, &log->mutex, &until);
	bool abandoned = log->abandoned = !log->ended;
	if (abandoned) pthread_detach(log->thread); /* it hangs in a write, and frees the log if that ever ends */
	pthread_mutex_unlock(&log->mutex);
	if (abandoned) {
		notice_line(LEVEL_ERROR, "the last lines of the log are lost: its reader or disk is too slow");
		return;
	}
	pthread_join(log->thread, NULL);
	log_free(log);
}
