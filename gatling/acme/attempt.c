/* attempt.c - see attempt.h. uacme runs a program, the hook, for each challenge; ours asks this process over a socket,
 * whose number it knows. */
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
#include "gatling/base/text.h"

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

/* In the new process. */
__attribute__((noreturn)) static void run(const struct acme_options *o, const char *name, int output, int channel) {
	char state[PATH_MAX], program[PATH_MAX], account[STORE_RESULT_MAX] = "";
	const char *argument[ARGUMENTS_MAX] = {"uacme", "-y", "-a", o->url, "-c", state};
	int n = 6, nothing = open("/dev/null", O_RDWR);
	store_path(state, o->directory, "uacme");
	store_path(program, o->directory, "hook");
	if (o->eab && !name && store_read(o->eab, account, sizeof account) == 0) {
		account[strcspn(account, " \t\r\n")] = '\0';
		argument[n++] = "-e";
		argument[n++] = account;
	}
	if (name) {
		const char *const issue[] = {"-f", "-t", "EC", "-h", program, "issue", name};
		for (size_t i = 0; i < sizeof issue / sizeof *issue; i++) argument[n++] = issue[i];
	} else {
		argument[n++] = "new";
		if (o->email) argument[n++] = o->email;
	}
	(void)setpgid(0, 0);
	/* nothing of this process may be where the two will be */
	output = fcntl(output, F_DUPFD, HOOK_FD + 1);
	channel = fcntl(channel, F_DUPFD, HOOK_FD + 1);
	bool ready = dup2(nothing, STDIN_FILENO) != -1 && dup2(nothing, STDOUT_FILENO) != -1 &&
				 dup2(output, STDERR_FILENO) != -1 && dup2(channel, HOOK_FD) != -1;
	close(output);
	close(channel);
	if (ready) execvp("uacme", (char **)(uintptr_t)argument);
	dprintf(STDERR_FILENO, "uacme: cannot be started: %s\n", strerror(errno));
	_exit(127);
}

static void close_both(int end[2]) {
	close(end[0]);
	close(end[1]);
}

int attempt_start(struct attempt *a, const struct acme_options *o, const char *name, int64_t now_ms) {
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
	if (process == 0) run(o, name, output[1], channel[1]);
	close(output[1]);
	close(channel[1]);
	if (process > 0) (void)setpgid(process, process); /* whoever comes first */
	if (process == -1) {
		close(output[0]);
		close(channel[0]);
		return -1;
	}
	*a = (struct attempt){.options = o, .process = process, .output = output[0], .hook = channel[0]};
	a->until_ms = now_ms + INT64_C(1000) * ATTEMPT_S;
	return 0;
}

/* Waits for the end of a run that has closed its output, or that is killed. Returns what waitpid(2) says; -1: nothing.
 */
static int end(struct attempt *a, struct challenges *challenges) {
	int status;
	pid_t found;
	while ((found = waitpid(a->process, &status, 0)) == -1 && errno == EINTR) {}
	close(a->output);
	close(a->hook);
	a->process = 0;
	challenges_remove_all(challenges, a); /* it may not have got as far */
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
		if (a->line_length == sizeof a->line) a->line_length = 0; /* not one of our hook */
	}
}

/* --- what uacme says --- */

static const char account_is_lost[] = "the authority does not know our account any more, so another is opened";

/* What to make of the types of problems (RFC 8555, section 6.7), which begin with urn:ietf:params:acme:error:. */
static const struct {
	const char *type, *meaning;
} problems[] = {
	{"connection", "the authority could not reach port 80 of this name"},
	{"dns", "the authority found no address of this name: add it to the DNS"},
	{"unauthorized", "the authority got another answer than ours: does the name lead to this server?"},
	{"incorrectResponse", "the authority got another answer than ours: does the name lead to this server?"},
	{"caa", "a CAA record of this name allows only other authorities"},
	{"rateLimited", "the authority wants fewer requests"},
	{"rejectedIdentifier", "the authority gives no certificates for this name"},
	{"externalAccountRequired", "the authority wants an external account: give --acme-eab"},
	{"invalidContact", "the authority refuses the address given with --acme"},
	{"unsupportedContact", "the authority refuses the address given with --acme"},
	{"userActionRequired", "the authority wants something of you"},
	{"serverInternal", "the authority has an error of its own"},
	{"accountDoesNotExist", account_is_lost},
};

/* Copies the value of a member of JSON that is a string; of escapes, those of one character. */
static bool find_member(const char *json, const char *name, char *value, size_t size) {
	char quoted[32];
	size_t n = 0;
	snprintf(quoted, sizeof quoted, "\"%s\"", name);
	const char *at = strstr(json, quoted);
	if (!at) return false;
	at += strlen(quoted);
	at += strspn(at, " \t\r\n:");
	if (*at++ != '"') return false;
	for (; *at && *at != '"' && n + 1 < size; at++) {
		if (*at == '\\' && at[1]) at++;
		value[n++] = *at;
	}
	value[n] = '\0';
	return true;
}

/* Finds the last line of uacme, without its name. */
static void last_line(const char *text, char *value, size_t size) {
	static const char start[] = "uacme: ";
	const char *found = "it says nothing";
	for (const char *at = text; (at = strstr(at, start)); found = at) at += strlen(start);
	snprintf(value, size, "%.*s", (int)strcspn(found, "\r\n"), found);
}

/* Returns the time in "retry after 2026-01-31 12:00:00 UTC", as Let's Encrypt says it; 0: there is none. */
static int64_t retry_after(const char *detail) {
	struct tm tm = {0};
	const char *at = strcasestr(detail, "retry after ");
	if (!at || !strptime(at + strlen("retry after "), "%Y-%m-%d %H:%M:%S", &tm)) return 0;
	return timegm(&tm);
}

static void explain(const char *text, const char *url, struct outcome *o) {
	char type[128], detail[ATTEMPT_REASON_MAX / 2] = "";
	o->limited = false;
	o->limited_until_s = 0;
	o->no_account = strstr(text, "Consider trying 'new'") || strstr(text, "error:accountDoesNotExist");
	if (!find_member(text, "type", type, sizeof type)) {
		bool unreachable = strstr(text, "curl_");
		if (o->no_account) {
			snprintf(o->reason, sizeof o->reason, "%s", account_is_lost);
			return;
		}
		last_line(text, detail, sizeof detail);
		snprintf(o->reason, sizeof o->reason, "%s%s%s",
				 unreachable ? "cannot get an answer from " : "uacme: ", unreachable ? url : detail,
				 unreachable && strstr(text, "SSL") ? " with a certificate that can be trusted" : "");
		return;
	}
	(void)find_member(text, "detail", detail, sizeof detail);
	const char *colon = strrchr(type, ':'), *kind = colon ? colon + 1 : type, *meaning = "the authority refuses";
	for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
		if (strcmp(kind, problems[i].type) == 0) meaning = problems[i].meaning;
	o->limited = strcmp(kind, "rateLimited") == 0;
	if (o->limited) o->limited_until_s = retry_after(detail);
	snprintf(o->reason, sizeof o->reason, "%s: %s", meaning, detail);
}

void attempt_explain(const char *text, const char *url, struct outcome *o) {
	explain(text, url, o);
	for (char *at = o->reason; *at; at++)
		if (*at < ' ' || *at > '~') *at = '?'; /* others have chosen it */
}

/* Returns whether it has been closed. */
static bool read_output(struct attempt *a) {
	char rest[512];
	for (;;) {
		const size_t room = sizeof a->text - 1 - a->length;
		ssize_t n = room ? read(a->output, a->text + a->length, room) : read(a->output, rest, sizeof rest);
		if (n > 0 && room) a->length += (size_t)n;
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
	else attempt_explain(a->text, a->options->url, o);
	return true;
}
