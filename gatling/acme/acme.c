/* acme.c - see acme.h. One process waits for the other and starts it again when it was killed; that one does the work.
 * Both end with the socket to the server. */
#include "gatling/acme/acme.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "gatling/acme/store.h"
#include "gatling/acme/subjects.h"
#include "gatling/base/notice.h"
#include "io/io.h"

/* Messages to the server: a line with the digit of its level in front, or "=NAME UNTIL GOOD RESULT" for a name, "=NAME"
 * for one that is gone. */
enum { MESSAGE_STATE = '=', MESSAGE_MAX = 1 + STORE_NAME_MAX + 32 + NOTICE_TEXT_MAX };

enum { RESTART_S = 1, TICK_MS = 1000, FD_LEAST = 16 /* above the number of the hook */ };

struct acme {
	const struct acme_options *options;
	struct challenges *challenges;
	int channel; /* to the process, and from it to the server; lines with their level in front; -1: closed */
	pid_t process;
};

/* What the process works with. */
struct work {
	struct acme *acme;
	const char *root;
	struct subjects subjects;
	struct attempt attempt[ACME_RUNS];
	struct subject *subject[ACME_RUNS]; /* of the attempts */
	struct subject account;             /* whose attempt opens one */
	bool has_account;
	unsigned limited;        /* attempts in a row that were too many for the authority */
	int64_t limited_until_s; /* no attempt before, since there were ACME_LIMITED_NAMES of them */
	int64_t scan_s;          /* when the next look for directories is due */
};

/* --- in the process --- */

static volatile sig_atomic_t hurry;

static void note_hurry(int signal) {
	(void)signal;
	hurry = 1;
}

static bool send_text(const struct acme *a, const char *text) {
	return send(a->channel, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) != -1;
}

/* notice_line() in this process goes to the server. */
static void to_server(void *owner, enum notice_level level, const char *text) {
	char line[MESSAGE_MAX];
	snprintf(line, sizeof line, "%d%s", (int)level, text);
	(void)send_text(owner, line);
}

/* Tells the server how a name is. Returns whether there was room for it. */
static bool tell(const struct acme *a, const struct subject *s) {
	char path[PATH_MAX], file[2 * STORE_NAME_MAX], result[STORE_RESULT_MAX] = "not asked for yet", text[MESSAGE_MAX];
	struct store_dates dates;
	snprintf(file, sizeof file, "%s/fullchain.pem", s->name);
	store_path(path, a->options->directory, "live", file);
	if (store_dates(path, &dates) == -1) dates.to = 0;
	store_path(path, a->options->directory, "results", s->name);
	(void)store_read(path, result, sizeof result);
	result[strcspn(result, "\n")] = '\0';
	snprintf(text, sizeof text, "%c%s %lld %d %s", MESSAGE_STATE, s->name, (long long)dates.to, s->good, result);
	return send_text(a, text);
}

static void tell_gone(void *owner, const char *name) {
	char text[MESSAGE_MAX];
	snprintf(text, sizeof text, "%c%s", MESSAGE_STATE, name);
	(void)send_text(owner, text);
}

static int64_t clock_ms(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void describe(char *text, size_t size, int64_t seconds) {
	if (seconds < 2 * 60) snprintf(text, size, "%lld s", (long long)seconds);
	else if (seconds < 2 * 60 * 60) snprintf(text, size, "%lld minutes", (long long)(seconds + 59) / 60);
	else snprintf(text, size, "%lld hours", (long long)(seconds + 3599) / 3600);
}

/* Keeps what came of an attempt, for --certificates. */
static void keep_result(const struct work *w, const struct subject *s, const char *text) {
	char path[PATH_MAX], line[STORE_RESULT_MAX], date[32];
	const time_t now = time(NULL);
	store_path(path, w->acme->options->directory, "results", s->name);
	strftime(date, sizeof date, "%F %H:%M", gmtime(&now));
	snprintf(line, sizeof line, "%s: %s\n", date, text);
	(void)store_write(path, line, 0600); /* a full disk is told otherwise */
}

/* not_before_s: when the authority allows the next attempt; 0: whenever it is due. */
static void failed(struct work *w, struct subject *s, const char *reason, int64_t not_before_s) {
	const int64_t now_s = time(NULL);
	char pause[32];
	subject_put_off(s, now_s);
	if (s->due_s < not_before_s) s->due_s = not_before_s;
	describe(pause, sizeof pause, s->due_s - now_s);
	const char *name = s == &w->account ? "account" : s->name;
	notice_line(LEVEL_WARNING, "certificates: %s: %s; next attempt in %s", name, reason, pause);
	if (s != &w->account) keep_result(w, s, reason);
}

static void cannot_write(struct work *w, struct subject *s) {
	char text[STORE_RESULT_MAX];
	snprintf(text, sizeof text, "cannot write to %s: %s", w->acme->options->directory, strerror(errno));
	failed(w, s, text, 0);
}

/* Takes up a new certificate, or one that could not be written before. */
static void install(struct work *w, struct subject *s, const char *what) {
	const char *directory = w->acme->options->directory;
	if (store_install(directory, s->name) == -1) {
		cannot_write(w, s);
		return;
	}
	subject_schedule(s, directory, time(NULL));
	notice_line(LEVEL_INFO, "certificates: %s: %s", s->name, what);
	keep_result(w, s, what);
}

/* Returns whether uacme has a certificate that is newer than the one in use, and need not be renewed. */
static bool has_newer(const struct work *w, const struct subject *s) {
	char path[PATH_MAX], file[2 * STORE_NAME_MAX];
	struct store_dates kept, used = {0};
	snprintf(file, sizeof file, "%s/cert.pem", s->name);
	store_path(path, w->acme->options->directory, "uacme", file);
	if (store_dates(path, &kept) == -1) return false;
	snprintf(file, sizeof file, "%s/fullchain.pem", s->name);
	store_path(path, w->acme->options->directory, "live", file);
	if (store_dates(path, &used) == -1) used.to = 0;
	return kept.to > used.to && kept.to - (kept.to - kept.from) / 3 > time(NULL);
}

static void start_run(struct work *w, struct subject *s) {
	if (s != &w->account && has_newer(w, s)) {
		install(w, s, "the last certificate is taken up");
		return;
	}
	const char *name = s == &w->account ? NULL : s->name;
	if (store_prepare(w->acme->options->directory, name ? name : "") == -1) {
		cannot_write(w, s);
		return;
	}
	for (int i = 0; i < ACME_RUNS; i++) {
		if (w->attempt[i].process) continue;
		if (attempt_start(&w->attempt[i], w->acme->options, name, clock_ms()) == -1) {
			failed(w, s, strerror(errno), 0);
			return;
		}
		w->subject[i] = s;
		s->attempt = &w->attempt[i];
		return;
	}
}

static void finish(struct work *w, struct subject *s, const struct outcome *outcome) {
	assert(s);
	const struct acme_options *o = w->acme->options;
	s->attempt = NULL;
	w->limited = outcome->limited ? w->limited + 1 : 0;
	if (w->limited >= ACME_LIMITED_NAMES) w->limited_until_s = time(NULL) + ACME_LIMITED_S;
	if (!outcome->good) {
		int64_t until_s = outcome->limited_until_s ? outcome->limited_until_s : time(NULL) + ACME_LIMITED_S;
		failed(w, s, outcome->reason, outcome->limited ? until_s : 0);
	} else if (s == &w->account) {
		char path[PATH_MAX];
		store_path(path, o->directory, "account", "");
		w->has_account = true;
		(void)store_write(path, o->url, 0600); /* else it is asked for again at the next start */
	} else {
		install(w, s, "the authority has given a certificate");
	}
}

static unsigned running(const struct work *w) {
	unsigned count = 0;
	for (int i = 0; i < ACME_RUNS; i++) count += w->attempt[i].process != 0;
	return count;
}

/* Starts what is due. */
static void start_due(struct work *w) {
	const int64_t now_s = time(NULL);
	int64_t next_s = INT64_MAX;
	if (now_s < w->limited_until_s) return;
	if (!w->has_account) {
		if (subjects_due(&w->subjects, INT64_MAX, &next_s) && !w->account.attempt && w->account.due_s <= now_s)
			start_run(w, &w->account);
		return;
	}
	for (struct subject *s; running(w) < ACME_RUNS && (s = subjects_due(&w->subjects, now_s, &next_s));)
		start_run(w, s);
}

/* Waits until something is to be done. Returns false when the server has ended. */
static bool wait_for_something(struct work *w) {
	struct pollfd at[1 + 2 * ACME_RUNS] = {{.fd = w->acme->channel, .events = POLLIN}};
	nfds_t count = 1;
	for (int i = 0; i < ACME_RUNS; i++) {
		if (!w->attempt[i].process) continue;
		at[count++] = (struct pollfd){.fd = w->attempt[i].output, .events = POLLIN};
		at[count++] = (struct pollfd){.fd = w->attempt[i].hook, .events = POLLIN};
	}
	if (poll(at, count, TICK_MS) == -1 && errno != EINTR && errno != EAGAIN) return false;
	return !at[0].revents; /* it says nothing but that it has ended */
}

static void scan(struct work *w) {
	const int64_t now_s = time(NULL);
	if (now_s < w->scan_s) return;
	w->scan_s = now_s + ACME_SCAN_S;
	if (subjects_scan(&w->subjects, w->acme->options, w->root, now_s) == -1)
		notice((uint64_t)errno, "certificates: cannot look for sites in %s: %s", w->root, strerror(errno));
}

static void work(struct work *w) {
	struct outcome outcome;
	do {
		if (hurry) {
			hurry = 0;
			w->scan_s = w->limited_until_s = w->account.due_s = 0;
			subjects_hurry(&w->subjects, time(NULL));
		}
		struct subject *s;
		scan(w);
		TAILQ_FOREACH(s, &w->subjects.all, all) if (!s->told) s->told = tell(w->acme, s);
		start_due(w);
		for (int i = 0; i < ACME_RUNS; i++)
			if (w->attempt[i].process && attempt_go_on(&w->attempt[i], w->acme->challenges, clock_ms(), &outcome))
				finish(w, w->subject[i], &outcome);
	} while (wait_for_something(w));
	for (int i = 0; i < ACME_RUNS; i++) attempt_stop(&w->attempt[i]);
}

/* Waits until no other process uses the store, as that of a server which is about to end. Returns false if the server
 * ends before. */
static bool lock(const struct acme *a) {
	char path[PATH_MAX];
	store_path(path, a->options->directory, "lock", "");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct pollfd server = {.fd = a->channel, .events = POLLIN};
	while (flock(fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno == EWOULDBLOCK)
			notice(1, "certificates: another process uses %s: waiting for its end", a->options->directory);
		else notice(1, "certificates: cannot lock %s: %s", path, strerror(errno));
		if (poll(&server, 1, TICK_MS) > 0) return false;
	}
	return true; /* fd stays open as long as the process lives */
}

__attribute__((noreturn)) static void serve(struct acme *a, const char *root) {
	struct work w = {.acme = a, .root = root};
	char path[PATH_MAX], url[STORE_RESULT_MAX];
	struct sigaction action = {.sa_handler = note_hurry};
	(void)sigaction(SIGHUP, &action, NULL);
	TAILQ_INIT(&w.subjects.all);
	w.subjects.gone = tell_gone;
	w.subjects.owner = a;
	notice_to(to_server, a);
	notice_echo(false);
	if (!lock(a)) _exit(0);
	challenges_clear(a->challenges);
	if (attempt_write_hook(a->options->directory) == -1)
		notice(1, "certificates: cannot write to %s: %s", a->options->directory, strerror(errno));
	store_path(path, a->options->directory, "account", "");
	w.has_account = store_read(path, url, sizeof url) == 0 && strcmp(url, a->options->url) == 0;
	work(&w);
	_exit(0);
}

/* Starts the process again whenever it was killed. */
__attribute__((noreturn)) static void keep_alive(struct acme *a, const char *root) {
	int status;
	sigset_t none;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_IGN); /* of the terminal: the server sees to it */
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	int keep = a->channel;
	(void)io_private_descriptors(&keep, 1); /* none of the server's sockets */
#ifdef __linux__
	(void)prctl(PR_SET_NAME, "gatling-acme");
#endif
	for (;;) {
		pid_t process = fork();
		if (process == 0) serve(a, root);
		if (process != -1 && waitpid(process, &status, 0) == process && WIFEXITED(status)) _exit(0);
		sleep(RESTART_S);
	}
}

/* --- in the server --- */

static bool can_run(const char *program) {
	char path[PATH_MAX];
	const char *directory = getenv("PATH");
	for (size_t n; directory && *directory; directory += n + (directory[n] == ':')) {
		n = strcspn(directory, ":");
		snprintf(path, sizeof path, "%.*s/%s", (int)n, directory, program);
		if (access(path, X_OK) == 0) return true;
	}
	return false;
}

/* Starts the process. Returns 0, or -1 with errno. */
static int split(struct acme *a, const struct acme_options *o, const char *root) {
	int end[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end) == -1) return -1;
	for (int i = 0; i < 2; i++) {
		int fd = fcntl(end[i], F_DUPFD_CLOEXEC, FD_LEAST);
		if (fd != -1) close(end[i]), end[i] = fd;
	}
	a->options = o;
	a->process = fork();
	a->channel = end[a->process == 0];
	close(end[a->process != 0]);
	if (a->process == 0) keep_alive(a, root);
	if (a->process == -1) close(a->channel);
	else (void)fcntl(a->channel, F_SETFL, O_NONBLOCK);
	return a->process == -1 ? -1 : 0;
}

int acme_start(const struct acme_options *o, const char *root, struct acme **acme) {
	*acme = NULL;
	if (!o->on) return 0;
	if (!can_run("uacme"))
		return notice_cannot("use", "--acme",
							 "there is no uacme, which speaks with the authority: install the package uacme");
	if (store_create(o->directory) == -1) return notice_cannot("keep certificates in", o->directory, strerror(errno));
	if (o->eab && access(o->eab, R_OK) == -1) return notice_cannot("read", o->eab, strerror(errno));
	char directory[PATH_MAX];
	struct acme *a = calloc(1, sizeof *a);
	if (a && realpath(root, directory) && (a->challenges = challenges_new()) && split(a, o, directory) == 0) {
		challenges_protect(a->challenges);
		*acme = a;
		return 0;
	}
	(void)notice_cannot("start", "the process for certificates", strerror(errno));
	if (a) challenges_free(a->challenges);
	free(a);
	return -1;
}

const struct challenges *acme_challenges(const struct acme *a) { return a->challenges; }

/* Reads a message about a name. */
static void show_state(char *text, acme_show *show, void *owner) {
	char *rest = text + strcspn(text, " ");
	struct acme_state state = {.name = text};
	if (*rest) {
		*rest++ = '\0';
		state.until_s = strtoll(rest, &rest, 10);
		state.good = strtol(rest, &rest, 10);
		state.result = rest + (*rest == ' ');
	}
	show(owner, &state);
}

void acme_collect(struct acme *a, acme_show *show, void *owner) {
	char text[MESSAGE_MAX];
	ssize_t n = 0;
	while (a->channel != -1 && (n = recv(a->channel, text, sizeof text - 1, 0)) > 1) {
		text[n] = '\0';
		if (*text != MESSAGE_STATE) notice_line((enum notice_level)(*text - '0'), "%s", text + 1);
		else if (show) show_state(text + 1, show, owner);
	}
	if (a->channel == -1 || (n == -1 && (errno == EAGAIN || errno == EINTR))) return;
	notice_line(LEVEL_ERROR,
				"the process for certificates has ended, so they are not renewed any more: restart gatling");
	close(a->channel);
	a->channel = -1;
}

void acme_stop(struct acme *a) {
	if (a->channel != -1) close(a->channel);
	a->channel = -1;
}

void acme_free(struct acme *a) {
	if (!a) return;
	acme_stop(a);
	(void)waitpid(a->process, NULL, 0);
	challenges_free(a->challenges);
	free(a);
}
