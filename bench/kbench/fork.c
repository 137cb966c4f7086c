/* fork.c - measures the time from fork(2), or what replaces it, to the first byte from the child, as the number of
 * children grows; then the time to end each child, in the order in which they were started. After forkbench of Felix
 * von Leitner's "Benchmarking BSD and Linux" (2003). Run with the statically linked program, it shows what dynamic
 * linking costs. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kbench/fork.h"
#include "bench/machine.h"
#include "bench/platform.h"

enum { THREAD_STACK = 64 * 1024 };

extern char **environ;

struct child {
	pid_t pid;
	pthread_t thread;
	pthread_mutex_t release; /* the thread waits for it */
};

/* Runs a child: it writes a byte, and waits until it is killed. */
__attribute__((noreturn)) static void be_child(int out) {
	run_child();
	if (write(out, "", 1) != 1) _exit(1);
	while (true) pause();
}

int fork_child(void) { be_child(STDOUT_FILENO); }

struct thread_start {
	int out;
	pthread_mutex_t *release;
};

static void *be_thread(void *argument) {
	struct thread_start own = *(struct thread_start *)argument;
	if (write(own.out, "", 1) == 1 && pthread_mutex_lock(own.release) == 0) pthread_mutex_unlock(own.release);
	return NULL;
}

static int start_thread(struct child *child, int out) {
	static struct thread_start told; /* read by the thread before its byte comes; the next thread starts only then */
	pthread_attr_t attributes;
	pthread_mutex_init(&child->release, NULL);
	pthread_mutex_lock(&child->release);
	told = (struct thread_start){.out = out, .release = &child->release};
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	errno = pthread_create(&child->thread, &attributes, be_thread, &told);
	pthread_attr_destroy(&attributes);
	return errno ? -1 : 0;
}

static char *const child_arguments[] = {"kbench", FORK_CHILD, NULL};

static int start_spawned(struct child *child, int out) {
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	errno = posix_spawn(&child->pid, platform_program(), &actions, NULL, child_arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return errno ? -1 : 0;
}

static int start_forked(struct child *child, int out, bool exec) {
	child->pid = fork();
	if (child->pid != 0) return child->pid == -1 ? -1 : 0;
	if (!exec) be_child(out);
	if (dup2(out, STDOUT_FILENO) != -1) execv(platform_program(), child_arguments);
	const unsigned char why = (unsigned char)errno;
	(void)!write(out, &why, 1);
	_exit(1);
}

static int start(const struct run *run, struct child *child, int out) {
	if (run_kind(run, "thread")) return start_thread(child, out);
	if (run_kind(run, "spawn")) return start_spawned(child, out);
	return start_forked(child, out, run_kind(run, "exec"));
}

/* Starts a child and reads its byte, which is 0, or the errno of a failed exec. Returns 0, or the errno that kept the
 * child from running. */
static int start_timed(const struct run *run, struct child *child, const int channel[2], int64_t *start_ns) {
	unsigned char why;
	int64_t before = machine_clock_ns();
	if (start(run, child, channel[1]) == -1) return errno;
	ssize_t got = read(channel[0], &why, 1);
	*start_ns = machine_clock_ns() - before;
	if (got == -1) return errno;
	return got == 1 ? why : ECHILD;
}

/* Starts children up to the limit or an interruption. Returns how many. Sets *error to the errno of the failure, or 0.
 */
static unsigned start_all(struct run *run, struct child *child, int64_t *start_ns, int *error) {
	int channel[2];
	*error = platform_pipe(channel) == -1 ? errno : 0;
	if (*error) return 0;
	for (unsigned n = 0; n < run->count; n++) {
		if (run_interrupted(run)) return n;
		if ((*error = start_timed(run, &child[n], channel, &start_ns[n]))) return n;
	}
	return run->count;
}

static int64_t end(const struct run *run, struct child *child) {
	int64_t before = machine_clock_ns();
	if (run_kind(run, "thread")) {
		pthread_mutex_unlock(&child->release);
		pthread_join(child->thread, NULL);
	} else {
		kill(child->pid, SIGTERM);
		waitpid(child->pid, NULL, 0);
	}
	return machine_clock_ns() - before;
}

static int measure(struct run *run) {
	struct child *child = run_memory(run, run->count, sizeof *child);
	int64_t *start_ns = run_memory(run, run->count, sizeof *start_ns);
	int64_t *end_ns = run_memory(run, run->count, sizeof *end_ns);
	if (!child || !start_ns || !end_ns) return -1;
	int error;
	run_ends_itself(run); /* a point has no end_ns until its child has ended */
	unsigned count = start_all(run, child, start_ns, &error);
	for (unsigned n = 0; n < count; n++) end_ns[count - 1 - n] = end(run, &child[n]);
	for (unsigned n = 0; n < count; n++) run_point(run, n, (int64_t[]){start_ns[n], end_ns[n]});
	errno = error;
	if (error) return run_stop(run, run->settings->kind, count);
	return count < run->count ? run_fail(run, "interrupted") : 0;
}

const struct benchmark benchmark_fork = {
	.name = "fork",
	.summary = "starting a child, until its first byte, against the children alive",
	.how = "From the call until a byte of the child has been read from a pipe; then the children are ended, first "
		   "come first, each until it has been waited for.",
	.n = "children alive",
	.columns = {"start_ns", "end_ns"},
	.kinds = {"fork", "exec", "spawn", "thread"},
	.count = 3000,
	.measure = measure,
};
