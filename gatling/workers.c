/* workers.c - see workers.h. */
#include "gatling/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gatling/base/notice.h"

struct worker_thread {
	struct workers *workers;
	struct worker *worker;
	pthread_t thread;
	int control; /* the main thread's end */
	bool asked;  /* a CONTROL_PING was sent to it */
};

struct workers {
	struct worker *worker;
	struct worker_thread *member;
	int count;   /* workers that have their `control` */
	int started; /* workers whose threads have started */
	atomic_int running;
	atomic_bool failed;
	pthread_t main_thread;
	struct limits limits;
};

static int member_new(struct workers *workers, const struct options *o) {
	int pair[2];
	struct worker *w = &workers->worker[workers->count];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1) return -1;
	workers->member[workers->count++] = (struct worker_thread){.workers = workers, .worker = w, .control = pair[0]};
	for (int i = 0; i < 2; i++) (void)fcntl(pair[i], F_SETFD, FD_CLOEXEC);
	w->options = o;
	w->number = (unsigned)workers->count - 1;
	w->limits = workers->limits.table.set ? &workers->limits : NULL;
	w->control = (struct control){.kind = COOKIE_CONTROL, .fd = pair[1]};
	return fcntl(pair[1], F_SETFL, O_NONBLOCK);
}

struct workers *workers_new(const struct options *o) {
	struct workers *workers = calloc(1, sizeof *workers);
	if (!workers) return NULL;
	workers->worker = calloc((size_t)o->workers, sizeof *workers->worker);
	workers->member = calloc((size_t)o->workers, sizeof *workers->member);
	bool failed = !workers->worker || !workers->member || limits_open(&workers->limits, &o->limits) == -1;
	while (!failed && workers->count < o->workers) failed = member_new(workers, o) == -1;
	if (!failed) return workers;
	int error = errno;
	workers_free(workers);
	errno = error;
	return NULL;
}

static struct worker *volatile still_used; /* by threads that hang */

void workers_free(struct workers *workers) {
	if (!workers) return;
	for (int i = 0; i < workers->started; i++) pthread_join(workers->member[i].thread, NULL);
	bool hangs = false;
	for (int i = 0; i < workers->count; i++) {
		close(workers->member[i].control);
		hangs |= workers->worker[i].hangs;
	}
	limits_close(&workers->limits);
	if (hangs) still_used = workers->worker;
	else free(workers->worker);
	free(workers->member);
	free(workers);
}

struct worker *workers_array(struct workers *workers) {
	return workers->worker;
}

struct counters *workers_counters(struct workers *workers, unsigned n) {
	return &workers->worker[n].counters;
}

static void *run_member(void *argument) {
	struct worker_thread *m = argument;
	/* No worker is ever cancelled. With glibc before 2.41 this saves two atomic operations at each call that could be a
	 * cancellation point, as nearly all calls here are (1 % of a small request). */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	if (worker_run(m->worker) == -1) atomic_store(&m->workers->failed, true);
	atomic_fetch_sub(&m->workers->running, 1);
	pthread_kill(m->workers->main_thread, SIGUSR2);
	return NULL;
}

/* Closes the main thread's copies of a worker's descriptors. A copy would keep a socket listening after the worker has
 * closed its own, or a channel open that it does not read any more. */
static void close_copies(const struct worker *w) {
	if (!w->private_descriptors) return;
	for (unsigned i = 0; i < w->acceptor.listeners; i++) listener_close(&w->acceptor.listener[i]);
	if (w->datagrams->channels) close(datagram_channel_of(w->datagrams, w->number)->inner);
	close(w->control.fd);
}

static const char *reason_of(int error) {
	return error == EMFILE ? "too many open files: raise their limit (ulimit -n), or lower --limit cache-files"
						   : strerror(error);
}

int workers_start(struct workers *workers, int root, struct mounts *mounts, struct log *log,
				  struct certificate_files *certificates, bool kernel_tls) {
	workers->main_thread = pthread_self();
	for (; workers->started < workers->count; workers->started++) {
		struct worker_thread *m = &workers->member[workers->started];
		m->worker->root = root;
		m->worker->mounts = mounts;
		m->worker->certificates = certificates;
		m->worker->kernel_tls = kernel_tls;
		if (log && !(m->worker->log = log_queue_new(log))) return notice_cannot("start", "a worker", strerror(ENOMEM));
		atomic_fetch_add(&workers->running, 1);
		int error = pthread_create(&m->thread, NULL, run_member, m);
		if (error) return notice_cannot("start", "a worker", strerror(error));
	}
	for (int i = 0; i < workers->count; i++) {
		char message;
		if (read(workers->member[i].control, &message, 1) == 1 && message == CONTROL_READY) continue;
		return notice_cannot("start", "a worker", reason_of(workers->worker[i].error));
	}
	for (int i = 0; i < workers->count; i++) close_copies(&workers->worker[i]);
	return 0;
}

void workers_tell(const struct workers *workers, enum control_message message) {
	char byte = (char)message;
	for (int i = 0; i < workers->count; i++)
		(void)!write(workers->member[i].control, &byte, 1); /* it may have ended already */
}

/* Returns whether a worker has answered the last CONTROL_PING, or has ended. */
static bool is_alive(const struct worker_thread *m) {
	char message;
	return !m->asked || recv(m->control, &message, 1, MSG_DONTWAIT) != -1;
}

bool workers_alive(struct workers *workers) {
	const char ping = CONTROL_PING;
	bool alive = true;
	for (int i = 0; i < workers->count; i++) {
		struct worker_thread *m = &workers->member[i];
		if (!is_alive(m)) alive = false; /* it has not answered the last one */
		else m->asked = write(m->control, &ping, 1) == 1;
	}
	return alive;
}

unsigned workers_connections(const struct workers *workers) {
	unsigned sum = 0;
	for (int i = 0; i < workers->count; i++)
		sum += __atomic_load_n(&workers->worker[i].context.connections, __ATOMIC_RELAXED);
	return sum;
}

bool workers_running(const struct workers *workers) { return atomic_load(&workers->running) > 0; }

bool workers_failed(const struct workers *workers) { return atomic_load(&workers->failed); }
