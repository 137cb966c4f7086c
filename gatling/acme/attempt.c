/* attempt.c - see attempt.h. uacme runs a program, the hook, for each challenge. Our hook talks to this process over a
 * socket, which it has as HOOK_FD. */
#include "gatling/acme/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gatling/acme/store.h"
#include "gatling/base/slice.h"

enum { HOOK_FD = 9, ARGUMENTS_MAX = 20 };

static const char hook[] =
	"#!/bin/sh\n"
	"# Tells gatling, on descriptor 9, how to answer a challenge: METHOD TYPE NAME TOKEN PROOF\n"
	"[ \"$2\" = http-01 ] || exit 1\n"
	"printf '%s %s %s\\n' \"$1\" \"$4\" \"$5\" >&9 && read -r answer <&9 && [ \"$answer\" = ok ]\n";

int attempt_write_hook(const char *directory) {
	char path[PATH_MAX], text[2 * sizeof hook];
	store_path(path, directory, "hook");
	if (store_read(path, text, sizeof text) == 0 && strcmp(text, hook) == 0 && access(path, X_OK) == 0) return 0;
	return store_write(path, hook, 0700);
}

/* --- starting --- */

unsigned attempt_version(void) {
	static const char start[] = "uacme: version ";
	unsigned long version = 0;
	char line[128];
	FILE *said = popen("uacme --version 2>&1", "re"); /* NOLINT(cert-env33-c): as execvp(3) below */
	if (!said) return 0;
	if (fgets(line, sizeof line, said) && strncmp(line, start, strlen(start)) == 0) {
		char *at = line + strlen(start) - 1; /* before the next number */
		for (int i = 0; i < 3; i++) version = 100 * version + (i == 0 || *at == '.' ? strtoul(at + 1, &at, 10) : 0);
	}
	while (fgets(line, sizeof line, said)) {}
	(void)pclose(said);
	return (unsigned)version;
}

/* Adds words to the arguments, the end of which is NULL. */
static void add(const char *argument[ARGUMENTS_MAX], const char *const *words) {
	while (*argument) argument++;
	while (*words) *argument++ = *words++;
}

/* Runs uacme, in the new process. */
__attribute__((noreturn)) static void run(enum attempt_kind kind, const struct acme_options *o, const char *name,
										  int output, int channel) {
	char state[PATH_MAX], program[PATH_MAX], account[STORE_RESULT_MAX] = "";
	const char *argument[ARGUMENTS_MAX] = {"uacme", "-vvv", "-y", "-a", o->url, "-c", state};
	store_path(state, o->directory, "uacme");
	store_path(program, o->directory, "hook");
	if (kind == ATTEMPT_ACCOUNT) {
		if (o->eab && store_read(o->eab, account, sizeof account) == 0) {
			account[strcspn(account, " \t\r\n")] = '\0';
			add(argument, (const char *[]){"-e", account, NULL});
		}
		add(argument, (const char *[]){"new", o->email, NULL});
	} else if (kind == ATTEMPT_QUESTION) {
		/* of an authority that does not say: one day before the end, the least that uacme takes */
		add(argument, (const char *[]){"-d", "1", "check", name, NULL});
	} else {
		if (o->profile) add(argument, (const char *[]){"-p", o->profile, NULL});
		/* without -f it decides by itself whether the certificate has to be renewed */
		add(argument, (const char *[]){"-f", "-t", "EC", "-h", program, "issue", name, NULL});
	}
	(void)setpgid(0, 0);
	/* first move them away from the numbers that dup2(2) overwrites */
	output = fcntl(output, F_DUPFD_CLOEXEC, HOOK_FD + 1);
	channel = fcntl(channel, F_DUPFD_CLOEXEC, HOOK_FD + 1);
	bool ready = dup2(output, STDERR_FILENO) != -1 && dup2(channel, HOOK_FD) != -1;
	int nothing = ready ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
	ready = nothing != -1 && dup2(nothing, STDIN_FILENO) != -1 && dup2(nothing, STDOUT_FILENO) != -1;
	if (ready) execvp("uacme", (char **)(uintptr_t)argument);
	dprintf(STDERR_FILENO, "uacme: cannot be started: %s\n", strerror(errno));
	_exit(127);
}

static void close_both(int end[2]) {
	close(end[0]);
	close(end[1]);
}

int attempt_start(struct attempt *a, enum attempt_kind kind, const struct acme_options *o, const char *name,
				  int64_t now_ms) {
	int output[2], channel[2];
	if (pipe(output) == -1) return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == -1) {
		close_both(output);
		return -1;
	}
	for (int i = 0; i < 2; i++) { /* another run must not hold them open */
		(void)fcntl(output[i], F_SETFD, FD_CLOEXEC);
		(void)fcntl(channel[i], F_SETFD, FD_CLOEXEC);
	}
	(void)fcntl(output[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(channel[0], F_SETFL, O_NONBLOCK);
	pid_t process = fork();
	if (process == 0) run(kind, o, name, output[1], channel[1]);
	close(output[1]);
	close(channel[1]);
	if (process > 0) (void)setpgid(process, process); /* as the child does, whichever comes first */
	if (process == -1) {
		close(output[0]);
		close(channel[0]);
		return -1;
	}
	*a = (struct attempt){.kind = kind, .options = o, .process = process, .output = output[0], .hook = channel[0]};
	a->until_ms = now_ms + INT64_C(1000) * ATTEMPT_S;
	return 0;
}

/* Waits for the end of a run that has closed its output, or was killed, and closes its descriptors. Returns its status
 * as waitpid(2) does, or -1 if that is unknown. */
static int end(struct attempt *a, struct challenges *challenges) {
	int status;
	pid_t found;
	while ((found = waitpid(a->process, &status, 0)) == -1 && errno == EINTR) {}
	close(a->output);
	close(a->hook);
	a->process = 0;
	challenges_remove_all(challenges, a); /* the hook may not have done it */
	return found == -1 ? -1 : status;
}

static void kill_run(const struct attempt *a) {
	if (kill(-a->process, SIGKILL) == -1) (void)kill(a->process, SIGKILL);
}

void attempt_stop(struct attempt *a, struct challenges *challenges) {
	if (!a->process) return;
	kill_run(a);
	(void)end(a, challenges);
}

/* --- the hook --- */

/* Answers "begin TOKEN PROOF", "done TOKEN PROOF" or "failed TOKEN PROOF". */
static void answer(const struct attempt *a, struct challenges *challenges, struct slice line) {
	struct slice method = slice_first(line, slice_until(line, ' '));
	slice_drop(&line, method.length + 1 < line.length ? method.length + 1 : line.length);
	struct slice token = slice_first(line, slice_until(line, ' '));
	slice_drop(&line, token.length + 1 < line.length ? token.length + 1 : line.length);
	bool begins = slice_equal(method, SLICE("begin"));
	if (!begins) challenges_remove(challenges, token);
	const char *word = !begins || challenges_put(challenges, a, token, line) ? "ok\n" : "no\n";
	(void)send(a->hook, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void serve_hook(struct attempt *a, struct challenges *challenges) {
	ssize_t n;
	while ((n = recv(a->hook, a->line + a->line_length, sizeof a->line - a->line_length, 0)) > 0) {
		a->line_length += (size_t)n;
		for (char *end; (end = memchr(a->line, '\n', a->line_length));) {
			answer(a, challenges, (struct slice){.at = a->line, .length = (size_t)(end - a->line)});
			a->line_length -= (size_t)(end + 1 - a->line);
			memmove(a->line, end + 1, a->line_length);
		}
		if (a->line_length == sizeof a->line) a->line_length = 0; /* not a line of our hook */
	}
}

/* --- its output --- */

/* Reads the output, and keeps its end, which contains the reason of a failure. Returns whether it has been closed. */
static bool read_output(struct attempt *a) {
	enum { HALF = ATTEMPT_OUTPUT / 2 };
	for (;;) {
		if (a->length == sizeof a->text - 1) {
			a->length -= HALF;
			memmove(a->text, a->text + HALF, a->length);
		}
		ssize_t n = read(a->output, a->text + a->length, sizeof a->text - 1 - a->length);
		if (n > 0) a->length += (size_t)n;
		if (n == 0) return true;
		if (n == -1 && errno != EINTR) return false;
	}
}

bool attempt_go_on(struct attempt *a, struct challenges *challenges, int64_t now_ms, struct outcome *o) {
	serve_hook(a, challenges);
	bool closed = read_output(a), late = now_ms >= a->until_ms;
	if (!closed && !late) return false;
	if (late) kill_run(a);
	int status = end(a, challenges);
	*o = (struct outcome){.good = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0};
	if (o->good) return true;
	a->text[a->length] = '\0';
	if (late) snprintf(o->reason, sizeof o->reason, "the authority took more than %d minutes", ATTEMPT_S / 60);
	else explain(a->text, a->options->url, time(NULL), o);
	return true;
}
