/* main.c - starts and ends the process: options, sockets, privileges, workers; then waits for signals. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gatling/listen.h"
#include "gatling/options.h"
#include "gatling/platform.h"
#include "gatling/worker.h"

enum { PLACES_TEXT = 4096 };

static pthread_t main_thread;
static atomic_int workers_running;

static int complain(const char *what, const char *which, const char *why) {
	fprintf(stderr, "gatling: cannot %s %s: %s\n", what, which, why);
	return -1;
}

static void raise_descriptor_limit(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == -1) return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* less will do, too */
}

/* Becomes the user; looked up before the root changes. */
struct identity {
	uid_t uid;
	gid_t gid;
};

static int find_user(const char *name, struct identity *id) {
	const struct passwd *user = getpwnam(name);
	if (!user) return complain("become user", name, "no such user");
	*id = (struct identity){.uid = user->pw_uid, .gid = user->pw_gid};
	return 0;
}

static int become(const char *name, const struct identity *id) {
	if (setgroups(1, &id->gid) == -1 || setgid(id->gid) == -1 || setuid(id->uid) == -1)
		return complain("become user", name, strerror(errno));
	return 0;
}

/* Enters the root directory; its descriptor, or -1. */
static int enter_root(const struct options *o, char *shown) {
	if (!realpath(o->root, shown) || chdir(o->root) == -1) return complain("serve", o->root, strerror(errno));
	tzset(); /* what it reads is outside */
	OPENSSL_init_crypto(0, NULL);
	if (geteuid() == 0 && chroot(".") == -1) return complain("chroot to", o->root, strerror(errno));
	int root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root == -1) return complain("serve", o->root, strerror(errno));
	return root;
}

/* A worker's thread, and then the word to the main thread that it has ended. */
static void *run_worker(void *worker) {
	worker_run(worker);
	atomic_fetch_sub(&workers_running, 1);
	pthread_kill(main_thread, SIGUSR2);
	return NULL;
}

struct crew {
	struct worker **worker;
	pthread_t *thread;
	int *control; /* our ends */
	int count;    /* of workers */
	int started;  /* of their threads */
};

static int crew_new(struct crew *crew, const struct options *o) {
	crew->worker = calloc((size_t)o->workers, sizeof *crew->worker);
	crew->thread = calloc((size_t)o->workers, sizeof *crew->thread);
	crew->control = calloc((size_t)o->workers, sizeof *crew->control);
	if (!crew->worker || !crew->thread || !crew->control) return -1;
	for (; crew->count < o->workers; crew->count++) {
		int pair[2];
		struct worker *w = calloc(1, sizeof *w);
		if (!w) return -1;
		crew->worker[crew->count] = w;
		w->options = o;
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1 || fcntl(pair[1], F_SETFL, O_NONBLOCK) == -1) return -1;
		crew->control[crew->count] = pair[0];
		w->control = (struct control){.kind = COOKIE_CONTROL, .fd = pair[1]};
	}
	return 0;
}

/* Starts the threads and waits until each serves, or one has failed. */
static int crew_start(struct crew *crew, int root, struct log *log) {
	for (int i = 0; i < crew->count; i++) {
		struct worker *w = crew->worker[i];
		w->root = root;
		if (log && !(w->log = log_lines_new(log))) return complain("start", "the log", strerror(ENOMEM));
	}
	for (; crew->started < crew->count; crew->started++) {
		atomic_fetch_add(&workers_running, 1);
		int error = pthread_create(&crew->thread[crew->started], NULL, run_worker, crew->worker[crew->started]);
		if (error) return complain("start", "a worker", strerror(error));
	}
	for (int i = 0; i < crew->count; i++) {
		char message = CONTROL_FAILED;
		if (read(crew->control[i], &message, 1) != 1 || message != CONTROL_READY) return -1;
	}
	/* a socket that we kept would go on listening when the worker has closed its own */
	for (int i = 0; i < crew->count; i++) {
		const struct worker *w = crew->worker[i];
		for (unsigned j = 0; w->private_descriptors && j < w->listeners; j++) close(w->listener[j].fd);
		if (w->private_descriptors) close(w->control.fd);
	}
	return 0;
}

static void crew_tell(const struct crew *crew, enum control_message message) {
	char byte = (char)message;
	for (int i = 0; i < crew->count; i++) (void)!write(crew->control[i], &byte, 1); /* it may have ended already */
}

/* Until the workers have ended. The first SIGTERM lets them finish what is under way, the second does not. */
static void obey_signals(const struct crew *crew, const sigset_t *signals) {
	bool stopping = false;
	while (atomic_load(&workers_running)) {
		int signal;
		if (sigwait(signals, &signal) != 0) continue;
		if (signal == SIGHUP) crew_tell(crew, CONTROL_DRAIN);
		if (signal != SIGINT && signal != SIGTERM) continue;
		crew_tell(crew, stopping ? CONTROL_QUIT : CONTROL_LIMIT);
		stopping = true;
	}
}

static void crew_free(struct crew *crew) {
	for (int i = 0; i < crew->count; i++) {
		pthread_join(crew->thread[i], NULL);
		close(crew->control[i]);
		free(crew->worker[i]);
	}
	free(crew->worker);
	free(crew->thread);
	free(crew->control);
}

static void announce(const struct options *o, const struct crew *crew, const char *directory) {
	char places[PLACES_TEXT];
	listen_describe(o, crew->worker[0], places, sizeof places);
	fprintf(stderr, "gatling: serving %s on %s (%s, %d %s)\n", directory, places, io_mechanism(), o->workers,
			o->workers == 1 ? "worker" : "workers");
}

/* Everything that takes privileges or may fail, in the order that it needs: bind, enter the root, become the user. The root's descriptor,
 * or -1 after a line about what went wrong. */
static int prepare(const struct options *o, struct crew *crew, char *directory) {
	struct identity id;
	if (crew_new(crew, o) == -1) return complain("start", "the workers", strerror(errno));
	if (o->user && find_user(o->user, &id) == -1) return -1;
	if (listen_open(o, crew->worker) == -1) return -1;
	int root = enter_root(o, directory);
	if (root == -1 || (o->user && become(o->user, &id) == -1)) return -1;
	if (o->symlinks_inside && !platform_can_open_beneath())
		return complain("keep", "--symlinks inside", "this system has no openat2(2) or O_RESOLVE_BENEATH");
	return root;
}

int main(int argc, char **argv) {
	struct options options;
	struct crew crew = {0};
	char directory[PATH_MAX];
	struct log *log = NULL;
	sigset_t signals;

	options_parse(&options, argc, argv);
	main_thread = pthread_self();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	raise_descriptor_limit();

	int root = prepare(&options, &crew, directory);
	if (root == -1) return 1;
	if (options.log && !(log = log_start(STDOUT_FILENO))) {
		complain("start", "the log", strerror(errno));
		return 1;
	}
	if (crew_start(&crew, root, log) == -1) _exit(1); /* without waiting for the workers that run */
	announce(&options, &crew, directory);
	obey_signals(&crew, &signals);
	crew_free(&crew);
	log_stop(log);
	close(root);
	return 0;
}
