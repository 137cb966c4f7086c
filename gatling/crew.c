/* crew.c - see crew.h. */
#include "gatling/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct member {
	struct crew *crew;
	struct worker *worker;
	pthread_t thread;
	int control; /* our end */
};

struct crew {
	struct worker *worker;
	struct member *member;
	int count;   /* of workers that have their control */
	int started; /* of their threads */
	atomic_int running;
	atomic_bool failed;
	pthread_t main_thread;
};

static int member_new(struct crew *crew, const struct options *o) {
	int pair[2];
	struct worker *w = &crew->worker[crew->count];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1) return -1;
	crew->member[crew->count++] = (struct member){.crew = crew, .worker = w, .control = pair[0]};
	w->options = o;
	w->control = (struct control){.kind = COOKIE_CONTROL, .fd = pair[1]};
	return fcntl(pair[1], F_SETFL, O_NONBLOCK);
}

struct crew *crew_new(const struct options *o) {
	struct crew *crew = calloc(1, sizeof *crew);
	if (!crew) return NULL;
	crew->worker = calloc((size_t)o->workers, sizeof *crew->worker);
	crew->member = calloc((size_t)o->workers, sizeof *crew->member);
	bool failed = !crew->worker || !crew->member;
	while (!failed && crew->count < o->workers) failed = member_new(crew, o) == -1;
	if (!failed) return crew;
	int error = errno;
	crew_free(crew);
	errno = error;
	return NULL;
}

void crew_free(struct crew *crew) {
	if (!crew) return;
	for (int i = 0; i < crew->started; i++) pthread_join(crew->member[i].thread, NULL);
	for (int i = 0; i < crew->count; i++) close(crew->member[i].control);
	free(crew->worker);
	free(crew->member);
	free(crew);
}

struct worker *crew_workers(struct crew *crew) {
	return crew->worker;
}

static void *run_member(void *argument) {
	struct member *m = argument;
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

int crew_start(struct crew *crew, int root, struct log *log, struct certificate_files *certificates, bool kernel_tls) {
	crew->main_thread = pthread_self();
	for (; crew->started < crew->count; crew->started++) {
		struct member *m = &crew->member[crew->started];
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

void crew_tell(const struct crew *crew, enum control_message message) {
	char byte = (char)message;
	for (int i = 0; i < crew->count; i++)
		(void)!write(crew->member[i].control, &byte, 1); /* it may have ended already */
}

bool crew_running(const struct crew *crew) { return atomic_load(&crew->running) > 0; }

bool crew_failed(const struct crew *crew) { return atomic_load(&crew->failed); }
