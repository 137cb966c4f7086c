/* run.c - see kbench.h. Each run is a process of its own, so that all runs begin alike, and a limit that one reaches
 * does not affect the next. It stores its points in shared memory that was touched before, and writes nothing while it
 * measures. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/counters.h"
#include "bench/interrupt.h"
#include "bench/kbench/kbench.h"
#include "bench/machine.h"
#include "bench/others.h"
#include "bench/platform.h"

enum { LANDMARKS_MAX = 4 };

struct landmark {
	unsigned n;
	char what[64];
};

struct point {
	unsigned n;
	int64_t value[KBENCH_VALUES_MAX];
};

enum outcome { OUTCOME_DIED, OUTCOME_DONE, OUTCOME_LIMIT, OUTCOME_FAILED, OUTCOME_SKIPPED };

struct run_record {
	enum outcome outcome;
	char words[KBENCH_WORDS_MAX]; /* the reason why it ended early */
	bool own_namespace, ended;
	volatile sig_atomic_t ends_itself, interrupted; /* see run_ends_itself() */
	unsigned client_percent;                        /* see run_client() */
	struct counters before, moved;
	int64_t began_ns, took_ns, queued_ns; /* the measurement; queued: it waited for a processor */
	char others[OTHERS_TEXT];             /* that other programs took the processors; "": they did not */
	char note[128];                       /* "key<TAB>value" */
	char directory[PATH_MAX];             /* made by run_directory(); empty: none */
	unsigned landmarks;
	struct landmark landmark[LANDMARKS_MAX];
	unsigned columns, every; /* points in a group, which is a row */
	int64_t *sorted;         /* room for the values of a group */
	size_t points, capacity;
	struct point point[];
};

void run_point(struct run *run, unsigned n, const int64_t *values) {
	struct run_record *r = run->record;
	if (r->points == r->capacity) return;
	struct point *p = &r->point[r->points++];
	p->n = n;
	memcpy(p->value, values, r->columns * sizeof *values);
}

void run_landmark(struct run *run, unsigned n, const char *what) {
	struct run_record *r = run->record;
	if (r->landmarks == LANDMARKS_MAX) return;
	struct landmark *l = &r->landmark[r->landmarks++];
	l->n = n;
	snprintf(l->what, sizeof l->what, "%s", what);
}

void *run_memory(struct run *run, size_t count, size_t size) {
	char *memory = calloc(count, size);
	if (!memory) (void)run_stop(run, "calloc", 0);
	else memset(memory, 0, count * size);
	return memory;
}

void run_client(struct run *run, unsigned busy_percent) { run->record->client_percent = busy_percent; }

void run_note(struct run *run, const char *key, const char *value) {
	snprintf(run->record->note, sizeof run->record->note, "%s\t%s", key, value);
}

const char *run_directory(struct run *run) {
	char *path = run->record->directory;
	if (snprintf(path, PATH_MAX, "%s/kbench-XXXXXX", run->settings->directory) >= PATH_MAX) errno = ENAMETOOLONG;
	else if (mkdtemp(path)) return path;
	*path = '\0';
	(void)run_stop(run, run->settings->directory, 0);
	return NULL;
}

void run_child(void) { platform_end_with_parent(); }

void run_ends_itself(struct run *run) { run->record->ends_itself = true; }

bool run_interrupted(const struct run *run) { return run->record->interrupted; }

bool run_own_namespace(const struct run *run) { return run->record->own_namespace; }

bool run_kind(const struct run *run, const char *kind) {
	return run->settings->kind && strcmp(run->settings->kind, kind) == 0;
}

/* Returns the name of the limit for the error of a call, or NULL. */
static const char *limit_of(const char *call, int error) {
	switch (error) {
	case EMFILE: return "RLIMIT_NOFILE";
	case ENFILE: return "fs.file-max";
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return strcmp(call, "bind") == 0 || strcmp(call, "connect") == 0 ? "net.ipv4.ip_local_port_range" : NULL;
	case EAGAIN: return "RLIMIT_NPROC, kernel.pid_max or the cgroup's pids.max";
	case ENOMEM: return strcmp(call, "mmap") == 0 ? "vm.max_map_count" : "memory";
	case ENOBUFS: return "memory of the network";
	case ENOSPC: return "space";
	default: return NULL;
	}
}

int run_stop(struct run *run, const char *call, unsigned n) {
	struct run_record *r = run->record;
	const char *limit = limit_of(call, errno);
	struct rlimit descriptors = {0};
	r->outcome = limit ? OUTCOME_LIMIT : OUTCOME_FAILED;
	int length = snprintf(r->words, sizeof r->words, "%s at %u: %s", call, n, strerror(errno));
	if (limit) length += snprintf(r->words + length, sizeof r->words - (size_t)length, "; the limit: %s", limit);
	if (limit && errno == EMFILE && getrlimit(RLIMIT_NOFILE, &descriptors) == 0)
		snprintf(r->words + length, sizeof r->words - (size_t)length, ", %llu",
				 (unsigned long long)descriptors.rlim_cur);
	return -1;
}

__attribute__((format(printf, 3, 0))) static void end_early(struct run_record *r, enum outcome outcome,
															const char *format, va_list arguments) {
	vsnprintf(r->words, sizeof r->words, format, arguments);
	r->outcome = outcome;
}

int run_skip(struct run *run, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	end_early(run->record, OUTCOME_SKIPPED, format, arguments);
	va_end(arguments);
	return -1;
}

int run_fail(struct run *run, const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	end_early(run->record, OUTCOME_FAILED, format, arguments);
	va_end(arguments);
	return -1;
}

void run_begin(void) { platform_name_process("measured"); }

void run_end(struct run *run) {
	struct run_record *r = run->record;
	struct counters now;
	if (r->ended) return;
	platform_name_process("kbench");
	r->ended = true;
	counters_read(&now);
	r->moved = counters_since(&now, &r->before);
	r->took_ns = machine_clock_ns() - r->began_ns;
	r->queued_ns = machine_queued_ns() - r->queued_ns;
}

static void measure(const struct benchmark *b, struct run *run) {
	const struct run_settings *s = run->settings;
	struct run_record *r = run->record;
	if (b->network) r->own_namespace = namespace_enter();
	if (s->port_first && !r->own_namespace) {
		(void)run_skip(run, "the range of ports is left as it is without a network namespace of one's own");
		return;
	}
	if (s->port_first && namespace_set_ports(s->port_first, s->port_last) == -1) {
		(void)run_stop(run, "net.ipv4.ip_local_port_range", 0);
		return;
	}
	counters_read(&r->before);
	r->began_ns = machine_clock_ns();
	r->queued_ns = machine_queued_ns();
	if (b->measure(run) == 0) r->outcome = OUTCOME_DONE;
	run_end(run);
}

/* --- a process for each run --- */

static volatile sig_atomic_t measuring; /* the process of the run; 0: none */
static struct run_record *shared;       /* with that process */

/* Ends the run, or makes it end; the results so far are printed. */
static void interrupt(int number) {
	const int error = errno;
	const bool later = interrupt_is_later();
	(void)number;
	shared->interrupted = 1;
	if (measuring && (!shared->ends_itself || later)) (void)kill(measuring, SIGKILL);
	errno = error;
}

/* Catches the signals that interrupt, except ignored ones, as with nohup(1). Returns those it catches. */
static sigset_t catch_signals(void) {
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction before, catch = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
	sigset_t caught;
	sigemptyset(&caught);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (sigaction(numbers[i], NULL, &before) == -1 || before.sa_handler == SIG_IGN) continue;
		(void)sigaction(numbers[i], &catch, NULL);
		sigaddset(&caught, numbers[i]);
	}
	return caught;
}

static void leave_signals(const sigset_t *caught) {
	for (int number = 1; number < NSIG; number++)
		if (sigismember(caught, number) == 1) signal(number, SIG_DFL);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
	(void)status, (void)type, (void)place;
	(void)remove(path);
	return 0;
}

/* Removes the directory of run_directory() with its files. */
static void remove_directory(char *path) {
	if (*path) (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	*path = '\0';
}

static void say_why(char *words, int status) {
	if (interrupt_came) snprintf(words, KBENCH_WORDS_MAX, "interrupted");
	else if (!WIFSIGNALED(status)) snprintf(words, KBENCH_WORDS_MAX, "ended with %d", WEXITSTATUS(status));
	else if (WTERMSIG(status) == SIGALRM)
		snprintf(words, KBENCH_WORDS_MAX, "a run may take %d seconds: with a smaller -n it takes less", RUN_S);
	else snprintf(words, KBENCH_WORDS_MAX, "ended by %s", strsignal(WTERMSIG(status)));
}

static void measure_in_process(const struct benchmark *b, struct run *run, const sigset_t *caught) {
	struct run_record *r = run->record;
	int status = 0;
	pid_t child = 0;
	r->outcome = OUTCOME_DIED;
	r->points = r->landmarks = 0;
	r->ended = false;
	r->ends_itself = false;
	r->client_percent = 0;
	*r->words = '\0';
	fflush(NULL);
	struct others *const others = others_begin(NULL, NULL);
	(void)sigprocmask(SIG_BLOCK, caught, NULL);
	const bool begun = !interrupt_came && (child = fork()) != -1;
	if (begun && child == 0) {
		leave_signals(caught);
		(void)sigprocmask(SIG_UNBLOCK, caught, NULL);
		(void)setpgid(0, 0);
		run_child();
		alarm(RUN_S);
		measure(b, run);
		_exit(0);
	}
	if (child == -1) (void)run_stop(run, "fork", 0);
	measuring = begun ? child : 0;
	(void)sigprocmask(SIG_UNBLOCK, caught, NULL);
	if (begun) {
		siginfo_t ended;
		(void)waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
		measuring = 0; /* before another process can get its ID */
		waitpid(child, &status, 0);
		(void)kill(-child, SIGKILL); /* processes that it has left behind */
		while (waitpid(-child, NULL, 0) > 0) {}
		remove_directory(r->directory);
	}
	(void)others_end(others, r->others);
	if (r->outcome == OUTCOME_DIED) say_why(r->words, status);
}

static bool was_disturbed(const struct benchmark *b, const struct run_record *r, char *words) {
	if (*r->others) snprintf(words, KBENCH_WORDS_MAX, "%s", r->others);
	if (*r->others || counters_stolen(&r->moved, words, KBENCH_WORDS_MAX)) return true;
	if (!b->alone || r->queued_ns * 100 <= r->took_ns * KBENCH_QUEUED_PERCENT) return false;
	snprintf(words, KBENCH_WORDS_MAX, "it waited for a processor for %.0f %% of the time",
			 (double)r->queued_ns * 100 / (double)r->took_ns);
	return true;
}

/* Returns a verdict like those of httpbench, without those for load generators only. words: the reason,
 * KBENCH_WORDS_MAX bytes. */
static const char *verdict_of(const struct benchmark *b, const struct run_record *r, char *words) {
	snprintf(words, KBENCH_WORDS_MAX, "%s", r->words);
	if (r->outcome == OUTCOME_DIED || r->outcome == OUTCOME_FAILED) return "FAIL";
	if (r->outcome == OUTCOME_SKIPPED) return "SKIP";
	if (r->outcome == OUTCOME_LIMIT) return "LIMIT";
	if (r->client_percent > KBENCH_BUSY_PERCENT) {
		snprintf(words, KBENCH_WORDS_MAX, "the client was busy for %u %% of the time", r->client_percent);
		return "CLIENT";
	}
	if (was_disturbed(b, r, words)) return "NOISY";
	/* they are of networks: without one, what changed them was another program */
	return b->network && counters_moved(&r->moved, words, KBENCH_WORDS_MAX) ? "XPASS" : "PASS";
}

static int compare_values(const void *a, const void *b) {
	const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
	return (first > second) - (first < second);
}

/* Prints the first point of a group, and for each column the median, and the maximum with its n. */
static void print_row(const struct run_record *r, unsigned number, const struct point *group, unsigned count,
					  FILE *out) {
	int64_t *const value = r->sorted;
	fprintf(out, "%u\t%u", number, group->n);
	for (unsigned c = 0; c < r->columns; c++) fprintf(out, "\t%lld", (long long)group->value[c]);
	for (unsigned c = 0; c < r->columns && r->every > 1; c++) {
		unsigned most = 0;
		for (unsigned i = 0; i < count; i++) {
			value[i] = group[i].value[c];
			if (value[i] > value[most]) most = i;
		}
		const long long max = value[most];
		qsort(value, count, sizeof *value, compare_values);
		fprintf(out, "\t%lld\t%lld\t%u", (long long)value[count / 2], max, group[most].n);
	}
	putc('\n', out);
}

static void print_run(const struct benchmark *b, unsigned number, const struct run_record *r, FILE *out) {
	char words[KBENCH_WORDS_MAX];
	if (number == 0) {
		if (b->network) fprintf(out, "# namespace\t%s\n", r->own_namespace ? "own" : "the host's");
		if (*r->note) fprintf(out, "# %s\n", r->note);
		for (unsigned i = 0; i < r->landmarks; i++)
			fprintf(out, "# landmark\t%u\t%s\n", r->landmark[i].n, r->landmark[i].what);
		fputs("run\tn", out);
		for (unsigned i = 0; i < r->columns; i++) fprintf(out, "\t%s", b->columns[i]);
		for (unsigned i = 0; i < r->columns && r->every > 1; i++)
			fprintf(out, "\t%s.median\t%s.max\t%s.max_n", b->columns[i], b->columns[i], b->columns[i]);
		putc('\n', out);
	}
	for (size_t i = 0; i < r->points; i += r->every)
		print_row(r, number, &r->point[i], r->points - i < r->every ? (unsigned)(r->points - i) : r->every, out);
	const char *verdict = verdict_of(b, r, words);
	fprintf(out, "# verdict\t%u\t%s\t%s\n", number, verdict, words);
	if (*words) fprintf(stderr, "kbench: %s, run %u: %s: %s\n", b->name, number, verdict, words);
}

unsigned run_warm_up(const struct benchmark *b, const struct run_settings *s) {
	unsigned warm_up = b->warm_up ? b->warm_up : KBENCH_WARM_UP;
	return s->count < warm_up ? s->count : warm_up;
}

int run_all(const struct benchmark *b, const struct run_settings *s, FILE *out) {
	size_t size = sizeof(struct run_record) + s->count * sizeof(struct point);
	struct run_record *r = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run run = {.settings = s, .count = run_warm_up(b, s), .record = r};
	if (r == MAP_FAILED) {
		fprintf(stderr, "kbench: no memory for %u points\n", s->count);
		return 1;
	}
	memset(r, 0, size); /* allocates its pages */
	platform_adopt_orphans();
	shared = r;
	const sigset_t caught = catch_signals();
	r->capacity = s->count;
	r->every = s->points && s->points < s->count ? (s->count + s->points - 1) / s->points : 1;
	r->sorted = malloc(r->every * sizeof *r->sorted);
	if (!r->sorted) {
		fprintf(stderr, "kbench: no memory for groups of %u points\n", r->every);
		return 1;
	}
	while (b->columns[r->columns]) r->columns++;
	measure_in_process(b, &run, &caught);
	run.count = s->count;
	int status = 0;
	for (unsigned number = 0; number < s->runs; number++) {
		measure_in_process(b, &run, &caught);
		print_run(b, number, r, out);
		const bool failed = r->outcome == OUTCOME_DIED || r->outcome == OUTCOME_FAILED;
		if (failed) status = 1;
		if (r->outcome == OUTCOME_LIMIT && !status) status = KBENCH_EXIT_LIMIT;
		if ((failed && interrupt_came) || fflush(out) == EOF) break;
	}
	free(r->sorted);
	munmap(r, size);
	return status;
}
