/* keeper.c - see keeper.h. */
#include "gatling/keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/keeper/lookout.h"
#include "gatling/keeper/take_over.h"
#include "gatling/sandbox/sandbox.h"

enum { SIGNALS = 32, LOOKOUT_AGAIN_MS = 1000 };

struct kept_server {
	pid_t process; /* 0: none */
	int channel;
	struct directory_id directory;
	int64_t started_ms;
	bool limited; /* it has been told to end soon */
};

/* When a signal came last, and from whom. */
struct heard_signal {
	pid_t sender;
	int64_t at_ms; /* 0: never, or it has found its double */
};

static struct keeper {
	const struct keeper_options *options;
	const struct service *service;
	char start[PATH_MAX], path[2 * PATH_MAX]; /* the working directory at the start, and DIR with it in front */
	struct kept_server current, next;         /* that serves, and that is to take over */
	struct kept_server old[KEEPER_SERVERS];   /* those that finish their connections; the oldest first */
	unsigned olds;
	int status;  /* how the last server has ended (waitpid(2)) */
	bool ending; /* there will be no other server */
	bool closed; /* the current one answers with 503 */
	bool lame;   /* the current one lacks a process */
	int lame_s;  /* how long one that does has to live, the last time; 0: none has */
	struct {
		pid_t process; /* 0: none */
		int channel;
		unsigned orders;
		int64_t again_ms, heard_ms;
		bool late; /* it has said nothing for LOOKOUT_LATE_S */
	} lookout;
	struct sighting seen;
	bool has_seen; /* since the current server was started */
	int64_t try_ms;
	int pause_s; /* after the last try; 0: it did not fail */
	struct heard_signal direct[SIGNALS], reported[SIGNALS];
} keeper;

/* --- signals --- */

static const int handled[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGTSTP, SIGCHLD};
enum { HANDLED = sizeof handled / sizeof *handled };

static struct {
	volatile sig_atomic_t came;
	volatile pid_t sender;
} arrived[SIGNALS];

/* Runs only while the keeper waits. */
static void note_signal(int signal, siginfo_t *info, void *context) {
	(void)context;
	arrived[signal].came = 1;
	arrived[signal].sender = info->si_pid;
}

static void catch_signals(sigset_t *waiting) {
	sigset_t all;
	const struct sigaction action = {.sa_sigaction = note_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, NULL, waiting);
	for (int i = 0; i < HANDLED; i++) {
		sigaddset(&all, handled[i]);
		sigdelset(waiting, handled[i]);
		(void)sigaction(handled[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &all, NULL);
}

static void leave_signals(const sigset_t *blocked) {
	for (int i = 0; i < HANDLED; i++) (void)signal(handled[i], SIG_DFL);
	(void)signal(SIGTTOU, SIG_IGN); /* it may write to the terminal from its process group, too */
	sigprocmask(SIG_SETMASK, blocked, NULL);
}

static void send_to(const struct kept_server *s, int signal) {
	const struct keeper_message m = {.word = KEEPER_SIGNAL, .signal = signal};
	if (!s->process) return;
	if (signal == SIGKILL || signal == SIGSTOP || signal == SIGCONT) (void)kill(s->process, signal);
	else (void)keeper_send(s->channel, &m, -1);
}

static void send_to_all(struct keeper *k, int signal) {
	send_to(&k->current, signal);
	send_to(&k->next, signal);
	/* one that finishes its connections has no service manager to tell that it opens the logs */
	for (unsigned i = 0; i < k->olds; i++)
		send_to(&k->old[i], signal == SIGHUP && !k->options->terminal ? SIGUSR1 : signal);
}

/* Stops this process and the servers, as SIGTSTP does, until they are continued. */
static void stop(struct keeper *k) {
	sigset_t set;
	struct sigaction action;
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	send_to_all(k, SIGSTOP);
	(void)sigaction(SIGTSTP, NULL, &action);
	(void)signal(SIGTSTP, SIG_DFL);
	(void)raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* here it stops, if somebody can continue it */
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)sigaction(SIGTSTP, &action, NULL);
	k->lookout.heard_ms = clock_ms(); /* it has been stopped, too */
	send_to_all(k, SIGCONT);
}

/* Passes a signal on, once: pkill(1), or a service manager, sends it to all processes. */
static void pass_on(struct keeper *k, int signal, pid_t sender, bool reported) {
	struct heard_signal *other = reported ? &k->direct[signal] : &k->reported[signal];
	const int64_t now_ms = clock_ms();
	if (other->at_ms && other->sender == sender && now_ms - other->at_ms < KEEPER_SAME_MS) {
		other->at_ms = 0;
		return;
	}
	*(reported ? &k->reported[signal] : &k->direct[signal]) = (struct heard_signal){.sender = sender, .at_ms = now_ms};
	if (signal != SIGUSR1 && (signal != SIGHUP || k->options->terminal)) k->ending = true;
	send_to_all(k, signal);
}

static void handle_signals(struct keeper *k) {
	for (int i = 0; i < HANDLED; i++) {
		if (!arrived[handled[i]].came) continue;
		arrived[handled[i]].came = 0;
		if (handled[i] == SIGTSTP) stop(k);
		else if (handled[i] != SIGCHLD) pass_on(k, handled[i], arrived[handled[i]].sender, false);
	}
}

/* --- servers --- */

static void forget(struct kept_server *s) {
	if (s->process) close(s->channel);
	*s = (struct kept_server){0};
}

static bool same_directory(const struct directory_id *a, const struct directory_id *b) {
	return a->device == b->device && a->inode == b->inode;
}

/* Closes in a new server what is the keeper's. */
static void become_server(struct keeper *k) {
	forget(&k->current);
	forget(&k->next);
	while (k->olds) forget(&k->old[--k->olds]);
	if (k->lookout.process) close(k->lookout.channel);
	if (service_is_managed(k->service)) close(k->service->channel);
	(void)setpgid(0, 0);
	if (*k->start) (void)!chdir(k->start); /* it may be another directory of that name now */
}

/* Passes the current server a socket to its successor. Returns the other end, or -1 with errno. */
static int introduce(const struct keeper *k) {
	const struct keeper_message m = {.word = KEEPER_SUCCESSOR};
	int end[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, end) == -1) return -1;
	errno = EAGAIN;
	const bool sent = keeper_send(k->current.channel, &m, end[1]);
	close(end[1]);
	if (sent && fcntl(end[0], F_SETFD, FD_CLOEXEC) == 0) return end[0];
	close(end[0]);
	return -1;
}

/* Starts a server that takes over from the current one, if there is one. Returns 0 in the server, its number in the
 * keeper, or -1 with errno. */
static pid_t start_server(struct keeper *k, struct keeper_link *link) {
	int end[2], predecessor = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end) == -1) return -1;
	(void)fcntl(end[0], F_SETFD, FD_CLOEXEC);
	(void)fcntl(end[1], F_SETFD, FD_CLOEXEC);
	const bool alone = !k->current.process;
	if (!alone) predecessor = introduce(k);
	const pid_t process = alone || predecessor != -1 ? fork() : -1;
	if (process == 0) {
		close(end[0]);
		become_server(k);
		*link = (struct keeper_link){.channel = end[1],
									 .predecessor = predecessor,
									 .keeper = getppid(),
									 .managed = service_is_managed(k->service)};
		return 0;
	}
	const int error = errno;
	close(end[1]);
	if (predecessor != -1) close(predecessor);
	if (process == -1) close(end[0]);
	else k->next = (struct kept_server){.process = process, .channel = end[0], .started_ms = clock_ms()};
	errno = error;
	return process;
}

/* Makes room for one more server that finishes its connections. Those before the last ones get a time limit. */
static void limit_old(struct keeper *k) {
	for (unsigned i = 0; i + KEEPER_PATIENT < k->olds; i++) {
		if (!k->old[i].limited) send_to(&k->old[i], SIGTERM);
		k->old[i].limited = true;
	}
	if (k->olds == KEEPER_SERVERS) send_to(&k->old[0], SIGTERM); /* at once */
}

/* Tells the current server whether DIR can be served. */
static void tell_directory(struct keeper *k, const char *wrong) {
	struct keeper_message m = {.word = wrong ? KEEPER_MISSING : KEEPER_FOUND};
	if (!k->current.process) return;
	if (wrong) snprintf(m.text, sizeof m.text, "%s", wrong);
	(void)keeper_send(k->current.channel, &m, -1);
	k->closed = wrong;
}

/* Tells the current server whether DIR has been looked up lately. */
static void tell_late(struct keeper *k, bool late) {
	const struct keeper_message m = {.word = late ? KEEPER_UNSEEN : KEEPER_SEEN};
	if (late != k->lookout.late && k->current.process) (void)keeper_send(k->current.channel, &m, -1);
	k->lookout.late = late;
}

/* Considers what has been seen last. */
static void consider(struct keeper *k) {
	if (!k->has_seen) return;
	if (k->seen.error) tell_directory(k, strerror(k->seen.error));
	else if (k->closed && same_directory(&k->seen.directory, &k->current.directory)) tell_directory(k, NULL);
}

/* Notes that the directory cannot be served by now. */
static void put_off(struct keeper *k) {
	k->pause_s = k->pause_s == 0 ? 1 : k->pause_s < KEEPER_PAUSE_S / 2 ? 2 * k->pause_s : KEEPER_PAUSE_S;
	k->try_ms = clock_ms() + INT64_C(1000) * k->pause_s;
	k->closed |= !k->lame;
	consider(k);
}

/* Handles that the next server serves. */
static void promote(struct keeper *k, const struct directory_id *directory) {
	if (k->current.process) k->old[k->olds++] = k->current;
	k->current = k->next;
	k->current.directory = *directory;
	k->next = (struct kept_server){0};
	k->closed = k->has_seen = k->lame = false;
	k->pause_s = 0;
	k->lookout.orders++;
	if (k->lookout.process) (void)!send(k->lookout.channel, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else k->lookout.orders = 0;
	limit_old(k);
}

/* Notes that the current server lacks a process. */
static void note_lame(struct keeper *k) {
	const bool lived = clock_ms() - k->current.started_ms > INT64_C(1000) * KEEPER_PAUSE_S;
	k->lame_s = lived || !k->lame_s ? KEEPER_LAME_S : k->lame_s < KEEPER_PAUSE_S / 2 ? 2 * k->lame_s : KEEPER_PAUSE_S;
	k->lame = true;
	k->try_ms = k->current.started_ms + INT64_C(1000) * k->lame_s;
}

/* --- what is heard --- */

static void hear_server(struct keeper *k, struct kept_server *s) {
	struct keeper_message m;
	int socket, heard = 0;
	while (s->process && (heard = keeper_receive(s->channel, &m, &socket)) == 1) {
		if (socket != -1) close(socket);
		if (s == &k->next && m.word == KEEPER_SERVES) {
			promote(k, &m.directory);
			s = &k->current;
		}
		if (m.word == KEEPER_SIGNAL && m.signal > 0 && m.signal < SIGNALS) pass_on(k, m.signal, m.sender, true);
		if (s != &k->current) continue;
		if (m.word == KEEPER_STATE) service_tell(k->service, m.text);
		if (m.word == KEEPER_NO_OTHER) k->ending = true;
		if (m.word != KEEPER_LAME) continue;
		note_lame(k);
	}
	if (heard == -1) send_to(s, SIGKILL); /* unless it is just ending, nothing can be told to it any more */
}

static void hear_lookout(struct keeper *k) {
	struct sighting s;
	while (k->lookout.process && recv(k->lookout.channel, &s, sizeof s, MSG_DONTWAIT) == sizeof s) {
		k->lookout.heard_ms = clock_ms();
		tell_late(k, false);
		if (s.known || s.order != k->lookout.orders) continue;
		k->seen = s;
		k->has_seen = true;
		k->try_ms = 0;
		consider(k);
	}
	if (k->lookout.process && clock_ms() - k->lookout.heard_ms > 1000 * (int64_t)LOOKOUT_LATE_S) tell_late(k, true);
}

/* Notes that a child has ended. */
static void bury(struct keeper *k, pid_t process, int status) {
	if (process == k->lookout.process) {
		close(k->lookout.channel);
		k->lookout.process = 0;
		k->lookout.again_ms = clock_ms() + LOOKOUT_AGAIN_MS;
	} else if (process == k->current.process) {
		k->status = status;
		if (!k->next.process) k->ending = true; /* else it may have taken over, and not said so yet */
		forget(&k->current);
	} else if (process == k->next.process) {
		forget(&k->next);
		if (k->current.process) put_off(k);
		else k->status = status;
	}
	for (unsigned i = 0; i < k->olds; i++) {
		if (process != k->old[i].process) continue;
		forget(&k->old[i]);
		memmove(&k->old[i], &k->old[i + 1], (--k->olds - i) * sizeof k->old[0]);
	}
}

/* Ends as the last server has ended. */
__attribute__((noreturn)) static void end(int status) {
	sigset_t none;
	sigemptyset(&none);
	if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
	(void)signal(WTERMSIG(status), SIG_DFL);
	(void)raise(WTERMSIG(status));
	sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(128 + WTERMSIG(status)); /* the first process of a container outlives the signal */
}

static void bury_all(struct keeper *k) {
	int status;
	for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
		/* what it has said before */
		hear_server(k, &k->next);
		hear_server(k, &k->current);
		bury(k, process, status);
	}
	if (!k->current.process && WIFSIGNALED(k->status)) end(k->status);
	if (!k->current.process && !k->next.process && !k->olds) end(k->status);
}

/* --- the loop --- */

/* Starts the lookout if it is due. */
static void look_out(struct keeper *k) {
	if (k->lookout.process || !k->current.process || k->ending || clock_ms() < k->lookout.again_ms) return;
	k->lookout.orders = 0;
	k->lookout.heard_ms = clock_ms();
	const pid_t process = lookout_start(k->path, k->options->sandbox, &k->lookout.channel);
	if (process == -1) k->lookout.again_ms = clock_ms() + LOOKOUT_AGAIN_MS;
	else k->lookout.process = process;
}

static bool wants_server(const struct keeper *k) {
	const bool other = k->has_seen && !same_directory(&k->seen.directory, &k->current.directory);
	return k->current.process && !k->next.process && !k->ending && k->olds < KEEPER_SERVERS && (other || k->lame) &&
		   !(k->has_seen && k->seen.error) && clock_ms() >= k->try_ms;
}

static void limit_wait(int64_t *wait_ms, int64_t ms) {
	if (*wait_ms == -1 || ms < *wait_ms) *wait_ms = ms;
}

/* Waits for a signal, a message or the time when something is due. */
static void wait_for_event(struct keeper *k, const sigset_t *waiting) {
	struct kept_server *const server[] = {&k->current, &k->next};
	int64_t wait_ms = -1;
	int most = -1;
	fd_set set;
	FD_ZERO(&set);
	for (int i = 0; i < 2; i++) {
		if (!server[i]->process) continue;
		FD_SET(server[i]->channel, &set);
		if (server[i]->channel > most) most = server[i]->channel;
	}
	if (k->lookout.process) {
		FD_SET(k->lookout.channel, &set);
		if (k->lookout.channel > most) most = k->lookout.channel;
		if (!k->lookout.late) limit_wait(&wait_ms, 1000 * LOOKOUT_LATE_S);
	} else if (!k->ending) {
		limit_wait(&wait_ms, LOOKOUT_AGAIN_MS);
	}
	const int64_t now_ms = clock_ms();
	if ((k->pause_s || k->lame) && !k->next.process)
		limit_wait(&wait_ms, k->try_ms > now_ms ? k->try_ms - now_ms : LOOKOUT_AGAIN_MS);
	if (k->next.process && k->current.process) limit_wait(&wait_ms, 1000 * TAKE_OVER_START_S);
	const struct timespec timeout = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
	if (pselect(most + 1, &set, NULL, NULL, wait_ms == -1 ? NULL : &timeout, waiting) == -1) FD_ZERO(&set);
}

/* Ends a server that does not get ready to serve. */
static void limit_start(struct keeper *k) {
	if (k->next.process && k->current.process && clock_ms() - k->next.started_ms > 1000 * (int64_t)TAKE_OVER_START_S)
		send_to(&k->next, SIGKILL);
}

/* Returns a descriptor in place of fd, which is one for pselect(2) even if a service manager has passed many. */
static int lower(int fd) {
	const int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (other == -1) return fd;
	close(fd);
	return other;
}

/* Fills in the paths. Returns 0, or -1 with errno. */
static int find_paths(struct keeper *k) {
	const char *root = k->options->root;
	if (!getcwd(k->start, sizeof k->start)) {
		k->start[0] = '\0';
		if (*root != '/') return -1;
	}
	if (*root == '/') snprintf(k->path, sizeof k->path, "%s", root);
	else snprintf(k->path, sizeof k->path, "%s/%s", k->start, root);
	return 0;
}

int keeper_start(const struct keeper_options *options, struct service *service, struct sockets *sockets,
				 struct sockets *udp, const sigset_t *blocked, struct keeper_link *link) {
	struct keeper *k = &keeper;
	sigset_t waiting;
	*k = (struct keeper){.options = options, .service = service};
	if (find_paths(k) == -1) return notice_cannot("serve", options->root, strerror(errno));
	sandbox_enter_keeper(options->runs_programs);
	catch_signals(&waiting);
	pid_t process = start_server(k, link);
	if (process == -1) return notice_cannot("start", "the server", strerror(errno));
	if (process != 0) {
		sockets_close(sockets, NULL); /* else their queues would outlive the servers */
		sockets_close(udp, NULL);
		k->next.channel = lower(k->next.channel);
	}
	while (process != 0) {
		wait_for_event(k, &waiting);
		hear_server(k, &k->next);
		hear_server(k, &k->current);
		hear_lookout(k);
		handle_signals(k);
		bury_all(k);
		look_out(k);
		limit_start(k);
		if (!wants_server(k)) continue;
		process = start_server(k, link);
		if (process != -1) continue;
		if (!k->lame) tell_directory(k, strerror(errno));
		put_off(k);
	}
	leave_signals(blocked);
	return 0;
}
