/* workers.c - see workers.h. */
#include "gatling/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct worker_thread {
	struct workers *crew;
	struct worker *worker;
	pthread_t thread;
	int control; /* our end */
};

struct workers {
	struct worker *worker;
	struct worker_thread *member;
	int count;   /* of workers that have their control */
	int started; /* of their threads */
	atomic_int running;
	atomic_bool failed;
	pthread_t main_thread;
};

static int member_new(struct workers *crew, const struct options *o) {
	int pair[2];
	struct worker *w = &crew->worker[crew->count];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1) return -1;
	crew->member[crew->count++] = (struct worker_thread){.crew = crew, .worker = w, .control = pair[0]};
	w->options = o;
	w->control = (struct control){.kind = COOKIE_CONTROL, .fd = pair[1]};
	return fcntl(pair[1], F_SETFL, O_NONBLOCK);
}

struct workers *workers_new(const struct options *o) {
	struct workers *crew = calloc(1, sizeof *crew);
	if (!crew) return NULL;
	crew->worker = calloc((size_t)o->workers, sizeof *crew->worker);
	crew->member = calloc((size_t)o->workers, sizeof *crew->member);
	bool failed = !crew->worker || !crew->member;
	while (!failed && crew->count < o->workers) failed = member_new(crew, o) == -1;
	if (!failed) return crew;
	int error = errno;
	workers_free(crew);
	errno = error;
	return NULL;
}

void workers_free(struct workers *crew) {
	if (!crew) return;
	for (int i = 0; i < crew->started; i++) pthread_join(crew->member[i].thread, NULL);
	for (int i = 0; i < crew->count; i++) close(crew->member[i].control);
	free(crew->worker);
	free(crew->member);
	free(crew);
}

struct worker *workers_array(struct workers *crew) {
	return crew->worker;
}

static void *run_member(void *argument) {
	struct worker_thread *m = argument;
	/* Nobody cancels a worker. Said like this, it spares two atomic operations at each call that could be a
	 * cancellation point, as nearly all of ours are, with glibc's before 2.41 (1 % of a small request). */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	if (worker_run(m->worker) == -1) atomic_store(&m->crew->failed, true);
	atomic_fetch_sub(&m->crew->running, 1);
	pthread_kill(m->crew->main_thread, SIGUSR2);
	return NULL;
}

/* A socket that we kept would go on listening when its worker has closed its own. */
static void close_copies(const struct worker *w) {
	if (!w->private_descriptors) return;
	for (unsigned i = 0; i < w->listeners; i++) close(w->listener[i].fd);
	close(w->control.fd);
}

int workers_start(struct workers *crew, int root, struct log *log, struct certificate_files *certificates,
				  bool kernel_tls) {
	crew->main_thread = pthread_self();
	for (; crew->started < crew->count; crew->started++) {
		struct worker_thread *m = &crew->member[crew->started];
		m->worker->root = root;
		m->worker->certificates = certificates;
		m->worker->kernel_tls = kernel_tls;
		if (log && !(m->worker->log = log_lines_new(log))) {
			fprintf(stderr, "gatling: no memory for the log\n");
			return -1;
		}
		atomic_fetch_add(&crew->running, 1);
		int error = pthread_create(&m->thread, NULL, run_member, m);
		if (error) {
			fprintf(stderr, "gatling: cannot start a worker: %s\n", strerror(error));
			return -1;
		}
	}
	for (int i = 0; i < crew->count; i++) {
		char message;
		if (read(crew->member[i].control, &message, 1) == 1 && message == CONTROL_READY) continue;
		fprintf(stderr, "gatling: cannot start a worker: %s\n", strerror(crew->worker[i].error));
		return -1;
	}
	for (int i = 0; i < crew->count; i++) close_copies(&crew->worker[i]);
	return 0;
}

void workers_tell(const struct workers *crew, enum control_message message) {
	char byte = (char)message;
	for (int i = 0; i < crew->count; i++)
		(void)!write(crew->member[i].control, &byte, 1); /* it may have ended already */
}

bool workers_running(const struct workers *crew) { return atomic_load(&crew->running) > 0; }

bool workers_failed(const struct workers *crew) { return atomic_load(&crew->failed); }
