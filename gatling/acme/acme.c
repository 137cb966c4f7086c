/* acme.c - see acme.h. There are two processes: one does the work, and the other starts it again if it was killed. Both
 * end when the server closes its socket. */
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
#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/sandbox/child.h"
#include "io/io.h"

/* Messages to the server: a line to be logged, with the digit of its level in front; "=NAME UNTIL GOOD RESULT" with the
 * state of a name; "=NAME" for a name that is gone. */
enum { MESSAGE_STATE = '=', MESSAGE_MAX = 1 + STORE_NAME_MAX + 32 + NOTICE_TEXT_MAX };

enum { RESTART_MAX_S = 60, TICK_MS = 1000, FD_LEAST = 16 /* above the hook's descriptor */ };

struct acme {
	const struct acme_options *options;
	struct challenges *challenges;
	unsigned version; /* of uacme, as attempt_version() says */
	struct child child;
};

/* The state of the process. */
struct work {
	struct acme *acme;
	const char *root;
	struct subjects subjects;
	struct attempt attempt[ACME_RUNS];
	struct subject *subject[ACME_RUNS]; /* the subjects of the attempts */
	struct subject account;             /* stands for the account: its attempt opens one */
	bool has_account;
	unsigned limited;        /* attempts in a row with a rate limit */
	int64_t limited_until_s; /* until then no attempt is made: there were ACME_LIMITED_NAMES of them */
	int64_t scan_ms;         /* when the next scan for directories is due, on the monotonic clock */
};

/* --- in the process --- */

static volatile sig_atomic_t hurry;

static void note_hurry(int signal) {
	(void)signal;
	hurry = 1;
}

static bool send_text(const struct acme *a, const char *text) {
	return send(a->child.channel, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) != -1;
}

/* Sends a line of notice_line() in this process to the server. */
static void to_server(void *owner, enum notice_level level, const char *text) {
	char line[MESSAGE_MAX];
	snprintf(line, sizeof line, "%d%s", (int)level, text);
	(void)send_text(owner, line);
}

/* Sends the state of a name to the server. Returns whether there was room for it. */
static bool tell(const struct acme *a, const struct subject *s) {
	char text[MESSAGE_MAX];
	struct store_result result;
	struct store_dates dates;
	if (store_dates_in_use(a->options->directory, s->name, &dates) == -1) dates.to = 0;
	bool known = store_recall(a->options->directory, s->name, &result) == 0;
	snprintf(text, sizeof text, "%c%s %lld %d %s", MESSAGE_STATE, s->name, (long long)dates.to, s->good,
			 known ? result.text : "not asked for yet");
	return send_text(a, text);
}

static void tell_gone(void *owner, const char *name) {
	char text[MESSAGE_MAX];
	snprintf(text, sizeof text, "%c%s", MESSAGE_STATE, name);
	(void)send_text(owner, text);
}

static void describe(char *text, size_t size, int64_t seconds) {
	if (seconds < 2 * 60) snprintf(text, size, "%lld s", (long long)seconds);
	else if (seconds < 2 * 60 * 60) snprintf(text, size, "%lld minutes", (long long)(seconds + 59) / 60);
	else snprintf(text, size, "%lld hours", (long long)(seconds + 3599) / 3600);
}

/* Stores the result of an attempt, for --certificates and the next start. Errors are ignored: a full disk is reported
 * elsewhere. */
static void keep_result(const struct work *w, const struct subject *s, const char *text) {
	struct store_result result = {.failures = s->failures, .due_s = s->due_s};
	const time_t now = time(NULL);
	size_t n = strftime(result.text, sizeof result.text, "%F %H:%M: ", gmtime(&now));
	snprintf(result.text + n, sizeof result.text - n, "%s", text);
	(void)store_keep(w->acme->options->directory, s->name, &result);
}

/* Logs and stores a failure, and postpones the next attempt. not_before_s: when the authority allows that, or 0. */
static void failed(struct work *w, struct subject *s, const char *reason, int64_t not_before_s) {
	const int64_t now_s = time(NULL);
	char pause[32];
	subject_put_off(s, now_s);
	if (s->due_s < not_before_s) s->due_s = not_before_s;
	describe(pause, sizeof pause, s->due_s - now_s);
	notice_line(LEVEL_WARNING, "certificates: %s: %s; next attempt in %s", s->name, reason, pause);
	keep_result(w, s, reason);
}

static void cannot_write(struct work *w, struct subject *s) {
	char text[STORE_RESULT_MAX];
	snprintf(text, sizeof text, "cannot write to %s: %s", w->acme->options->directory, strerror(errno));
	failed(w, s, text, 0);
}

/* Puts a new certificate into use, or one that could not be written before. */
static void install(struct work *w, struct subject *s, const char *what) {
	const char *directory = w->acme->options->directory;
	if (store_install(directory, s->name) == -1) {
		cannot_write(w, s);
		return;
	}
	const unsigned failures = s->failures;
	const int64_t now_s = time(NULL);
	subject_schedule(s, w->acme->options, now_s);
	if (s->due_s <= now_s) {
		s->failures = failures;
		failed(w, s, "the new certificate is due to be renewed already, or cannot be read: is the clock right?", 0);
		return;
	}
	notice_line(LEVEL_INFO, "certificates: %s: %s", s->name, what);
	keep_result(w, s, what);
}

/* Returns whether uacme has a certificate that is newer than the one in use, and need not be renewed. */
static bool has_newer(const struct work *w, const struct subject *s) {
	const struct acme_options *o = w->acme->options;
	char path[PATH_MAX];
	struct store_dates kept, used;
	if (!store_is_of(o->directory, s->name, o->url)) return false;
	store_path(path, o->directory, "uacme/%s/cert.pem", s->name);
	if (store_dates(path, &kept) == -1) return false;
	if (store_dates_in_use(o->directory, s->name, &used) == -1) used.to = 0;
	return kept.to > used.to && subject_renewal_s(&kept) > time(NULL);
}

/* Starts a run in a free place. Returns false if it fails, with errno. */
static bool start_attempt(struct work *w, struct subject *s, enum attempt_kind kind) {
	for (int i = 0; i < ACME_RUNS; i++) {
		if (w->attempt[i].process) continue;
		if (attempt_start(&w->attempt[i], kind, w->acme->options, s->name, clock_ms()) == -1) return false;
		w->subject[i] = s;
		s->attempt = &w->attempt[i];
		break;
	}
	return true;
}

static void start_run(struct work *w, struct subject *s) {
	const bool account = s == &w->account;
	if (!account && has_newer(w, s)) {
		install(w, s, "the last certificate is taken up");
		return;
	}
	const char *directory = w->acme->options->directory;
	if (attempt_write_hook(directory) == -1 || store_prepare(directory, account ? "" : s->name) == -1)
		cannot_write(w, s);
	else if (!start_attempt(w, s, account ? ATTEMPT_ACCOUNT : ATTEMPT_CERTIFICATE)) failed(w, s, strerror(errno), 0);
}

/* Notes the answer to a question. One that fails is put again later: until a third of the lifetime is left, nothing
 * depends on it. */
static void take_answer(struct subject *s, const struct outcome *outcome) {
	const int64_t now_s = time(NULL);
	s->ask_s = now_s + ACME_ASK_S;
	if (!outcome->good) return;
	s->due_s = now_s;
	notice_line(LEVEL_INFO, "certificates: %s: the authority wants it to be renewed now", s->name);
}

static void finish(struct work *w, struct subject *s, const struct outcome *outcome) {
	assert(s);
	const struct acme_options *o = w->acme->options;
	const enum attempt_kind kind = s->attempt->kind;
	s->attempt = NULL;
	if (kind == ATTEMPT_QUESTION) {
		take_answer(s, outcome);
		return;
	}
	w->limited = outcome->limited ? w->limited + 1 : 0;
	if (w->limited >= ACME_LIMITED_NAMES) w->limited_until_s = time(NULL) + ACME_LIMITED_S;
	if (outcome->no_account && s != &w->account) {
		w->has_account = false;
		if (w->account.due_s < time(NULL) + RESTART_MAX_S) w->account.due_s = time(NULL) + RESTART_MAX_S;
	}
	if (!outcome->good) {
		int64_t until_s = outcome->limited_until_s ? outcome->limited_until_s : time(NULL) + ACME_LIMITED_S;
		failed(w, s, outcome->reason, outcome->limited ? until_s : 0);
	} else if (s == &w->account) {
		char path[PATH_MAX];
		store_path(path, o->directory, "account");
		w->has_account = true;
		(void)store_write(path, o->url, 0600); /* if it fails, the next start requests the account again */
		w->account.failures = 0;
		keep_result(w, s, "the authority has opened the account");
		subjects_hurry(&w->subjects, time(NULL)); /* those that failed without an account */
	} else if (store_note_authority(o->directory, s->name, o->url) == -1) {
		cannot_write(w, s);
	} else {
		install(w, s, "the authority has given a certificate");
	}
}

static unsigned running(const struct work *w) {
	unsigned count = 0;
	for (int i = 0; i < ACME_RUNS; i++) count += w->attempt[i].process != 0;
	return count;
}

/* Starts the attempts that are due. */
static void start_due(struct work *w) {
	const int64_t now_s = time(NULL);
	/* a longer pause was begun while the clock was ahead */
	if (now_s < w->limited_until_s && w->limited_until_s - ACME_LIMITED_S <= now_s) return;
	if (!w->has_account) {
		if (subjects_due(&w->subjects, INT64_MAX) && !w->account.attempt && subject_is_due(&w->account, now_s))
			start_run(w, &w->account);
		return;
	}
	for (struct subject *s; running(w) < ACME_RUNS && (s = subjects_due(&w->subjects, now_s));) start_run(w, s);
	if (w->acme->version < ATTEMPT_UACME_1_8) return;
	for (struct subject *s; running(w) < ACME_RUNS && (s = subjects_to_ask(&w->subjects, now_s));)
		if (!start_attempt(w, s, ATTEMPT_QUESTION)) s->ask_s = now_s + ACME_ASK_S;
}

/* Waits until something has to be done. Returns false when the server has ended. */
static bool wait_for_something(struct work *w) {
	struct pollfd at[1 + 2 * ACME_RUNS] = {{.fd = w->acme->child.channel, .events = POLLIN}};
	nfds_t count = 1;
	for (int i = 0; i < ACME_RUNS; i++) {
		if (!w->attempt[i].process) continue;
		at[count++] = (struct pollfd){.fd = w->attempt[i].output, .events = POLLIN};
		at[count++] = (struct pollfd){.fd = w->attempt[i].hook, .events = POLLIN};
	}
	if (poll(at, count, TICK_MS) == -1 && errno != EINTR && errno != EAGAIN) return false;
	return !at[0].revents; /* the server sends nothing; it has ended */
}

static void scan(struct work *w) {
	const int64_t now_ms = clock_ms();
	if (now_ms < w->scan_ms) return;
	w->scan_ms = now_ms + INT64_C(1000) * ACME_SCAN_S;
	if (subjects_scan(&w->subjects, w->acme->options, w->root, time(NULL)) == -1)
		notice((uint64_t)errno, "certificates: cannot look for sites in %s: %s", w->root, strerror(errno));
	else if (!w->subjects.count)
		notice(0,
			   "certificates: none is asked for, as no directory in %s has the name of a host: make one, as "
			   "www.example.org, or name it with --acme-name",
			   w->root);
}

/* Logs, after a start, that attempts which failed before are not repeated at once. */
static void tell_waiting(const struct work *w) {
	const int64_t now_s = time(NULL);
	const bool account = w->account.failures && !subject_is_due(&w->account, now_s);
	int64_t due_s = account ? w->account.due_s : INT64_MAX;
	unsigned count = account;
	char pause[32];
	const struct subject *s;
	TAILQ_FOREACH(s, &w->subjects.all, all) {
		if (!s->failures || subject_is_due(s, now_s)) continue;
		if (s->due_s < due_s) due_s = s->due_s;
		count++;
	}
	if (!count) return;
	describe(pause, sizeof pause, due_s - now_s);
	notice_line(
		LEVEL_INFO,
		"certificates: %u failed before the start; the next attempt is in %s: gatling --certificates shows why, "
		"pkill -HUP gatling-acme asks now",
		count, pause);
}

static void work(struct work *w) {
	struct outcome outcome;
	do {
		if (hurry) {
			hurry = 0;
			w->scan_ms = w->limited_until_s = w->account.due_s = 0;
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
	for (int i = 0; i < ACME_RUNS; i++) attempt_stop(&w->attempt[i], w->acme->challenges);
}

/* Locks the store. Waits while another process uses it, such as that of a server that is about to end. Returns false if
 * the server ends first. */
static bool lock(const struct acme *a) {
	char path[PATH_MAX];
	struct pollfd server = {.fd = a->child.channel, .events = POLLIN};
	store_path(path, a->options->directory, "lock");
	do {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0) return true; /* it stays open as long as the process lives */
		if (errno == EWOULDBLOCK)
			notice(1, "certificates: another process uses %s: waiting for its end", a->options->directory);
		else notice((uint64_t)errno, "certificates: cannot lock %s: %s", path, strerror(errno));
		if (fd != -1) close(fd);
	} while (poll(&server, 1, TICK_MS) <= 0);
	return false;
}

/* Returns whether the authority has an account for the key that uacme has. */
static bool has_account(const struct acme_options *o) {
	char path[PATH_MAX], url[STORE_RESULT_MAX];
	store_path(path, o->directory, "account");
	if (store_read(path, url, sizeof url) == -1 || strcmp(url, o->url) != 0) return false;
	store_path(path, o->directory, "uacme/private/key.pem");
	return store_prepare(o->directory, "") == 0 && access(path, R_OK) == 0;
}

__attribute__((noreturn)) static void serve(struct acme *a, const char *root) {
	struct work w = {.acme = a, .root = root, .account.name = "account"};
	struct sigaction action = {.sa_handler = note_hurry};
	(void)sigaction(SIGHUP, &action, NULL);
	TAILQ_INIT(&w.subjects.all);
	w.subjects.gone = tell_gone;
	w.subjects.owner = a;
	notice_to(to_server, a);
	notice_echo(false);
	if (!lock(a)) _exit(0);
	challenges_remove_all(a->challenges, NULL);              /* what the last process has left */
	(void)store_ask(a->options->directory, a->options->url); /* if that fails, later writes do, too */
	w.has_account = has_account(a->options);
	subject_recall(&w.account, a->options->directory);
	scan(&w);
	tell_waiting(&w);
	work(&w);
	_exit(0);
}

/* Starts the process again whenever it is killed. */
__attribute__((noreturn)) static void keep_alive(struct acme *a, const char *root) {
	int status;
	sigset_t none;
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_IGN); /* from the terminal: the server handles it */
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGUSR1, SIG_IGN); /* meant for the server, by pkill(1) without -x */
	(void)signal(SIGUSR2, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL); /* else waitpid(2) would not return a child's status */
	int keep = a->child.channel;
	io_close_others(&keep, 1); /* none of the server's sockets */
#ifdef __linux__
	(void)prctl(PR_SET_NAME, "gatling-acme");
#endif
	struct pollfd server = {.fd = a->child.channel};
	for (int pause_s = 1;; pause_s = pause_s < RESTART_MAX_S / 2 ? 2 * pause_s : RESTART_MAX_S) {
		const int64_t started_ms = clock_ms();
		pid_t process = fork();
		if (process == 0) serve(a, root);
		if (process != -1 && waitpid(process, &status, 0) == process && WIFEXITED(status)) _exit(0);
		if (clock_ms() - started_ms > 1000 * RESTART_MAX_S) pause_s = 1;
		if (poll(&server, 1, 1000 * pause_s) > 0) _exit(0); /* POLLHUP: the server has ended */
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
	a->options = o;
	const int forked = child_fork(&a->child, SOCK_SEQPACKET);
	if (forked == -1) return -1;
	const int high = fcntl(a->child.channel, F_DUPFD_CLOEXEC, FD_LEAST);
	if (high != -1) close(a->child.channel), a->child.channel = high;
	if (forked == 0) keep_alive(a, root);
	(void)fcntl(a->child.channel, F_SETFL, O_NONBLOCK);
	return 0;
}

int acme_start(const struct acme_options *o, const char *root, struct acme **acme) {
	*acme = NULL;
	if (!o->on) return 0;
	if (!can_run("uacme"))
		return notice_cannot("use", "--acme",
							 "there is no uacme, which speaks with the authority: install the package uacme");
	const unsigned version = attempt_version();
	if (o->profile && version < ATTEMPT_UACME_1_8) {
		char reason[128];
		snprintf(reason, sizeof reason, "it takes uacme 1.8 or later, and this is %u.%u.%u", version / 10000,
				 version / 100 % 100, version % 100);
		return notice_cannot("use", "--acme-profile", reason);
	}
	if (store_create(o->directory) == -1) return notice_cannot("keep certificates in", o->directory, strerror(errno));
	char account[STORE_RESULT_MAX];
	if (o->eab && store_read(o->eab, account, sizeof account) == -1)
		return notice_cannot("read", o->eab, strerror(errno));
	if (o->eab && !strchr(account, ':')) return notice_cannot("use", o->eab, "it is not KEYID:KEY");
	char directory[PATH_MAX];
	struct acme *a = calloc(1, sizeof *a);
	if (a) a->version = version;
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

/* Parses a message about a name, and passes it to show(). */
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
	while (a->child.channel != -1 && (n = recv(a->child.channel, text, sizeof text - 1, 0)) > 1) {
		text[n] = '\0';
		if (*text != MESSAGE_STATE) notice_line((enum notice_level)(*text - '0'), "%s", text + 1);
		else if (show) show_state(text + 1, show, owner);
	}
	if (a->child.channel == -1 || (n == -1 && (errno == EAGAIN || errno == EINTR))) return;
	notice_line(LEVEL_ERROR, "the process for certificates has ended, so this server renews them no more");
	child_hang_up(&a->child);
}

void acme_stop(struct acme *a) { child_hang_up(&a->child); }

void acme_free(struct acme *a) {
	if (!a) return;
	child_stop(&a->child);
	challenges_free(a->challenges);
	free(a);
}
