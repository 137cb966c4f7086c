/* supervise.c - see supervise.h. */
#include "gatling/supervise.h"

#include <stdint.h>
#include <stdio.h>

#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/sandbox/child.h"
#include "gatling/tls/certificate_files.h"

/* The stages of the end. */
enum stage {
	STAGE_SERVE,
	STAGE_ANNOUNCE, /* each connection ends with its next response; new ones are still accepted */
	STAGE_DRAIN,    /* the same, but no new ones are accepted */
	STAGE_IDLE,     /* the same, and idle connections end, too */
	STAGE_LIMIT     /* the same, with a time limit */
};

struct state {
	enum stage stage;
	int64_t until_ms; /* the end of STAGE_ANNOUNCE, or of STAGE_DRAIN if another directory is served; 0: not set */
	bool missing;     /* what the workers have been told */
	bool lame;        /* a process beside the server has ended */
	int64_t alive_ms; /* when the next WATCHDOG=1 is due */
	int64_t look_ms;  /* when look() is to be called next; 0: not set */
};

void supervise_block_signals(sigset_t *signals) {
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the log may reach the limit of file sizes */
	sigemptyset(signals);
	sigaddset(signals, SIGHUP);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGQUIT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGCHLD);
	sigaddset(signals, SIGALRM); /* see platform_wait_signal() */
	sigaddset(signals, SIGUSR1); /* the log file was renamed */
	sigaddset(signals, SIGUSR2); /* a worker has ended, or a successor has taken over */
	pthread_sigmask(SIG_BLOCK, signals, NULL);
}

static void enter(const struct supervisor *s, struct state *state, enum stage stage) {
	static const enum control_message message[] = {[STAGE_ANNOUNCE] = CONTROL_ANNOUNCE,
												   [STAGE_DRAIN] = CONTROL_DRAIN,
												   [STAGE_IDLE] = CONTROL_IDLE,
												   [STAGE_LIMIT] = CONTROL_LIMIT};
	if (stage <= state->stage) return;
	if (state->stage == STAGE_SERVE && !take_over_happened(s->take_over)) keeper_tell_manager(s->link, "STOPPING=1");
	if (stage >= STAGE_DRAIN) {
		status_leave_sockets(s->status, take_over_happened(s->take_over));
		take_over_close(s->take_over, s->sockets);
	}
	if (s->acme) acme_stop(s->acme); /* a successor has its own */
	workers_tell(s->workers, message[stage]);
	state->stage = stage;
}

static void terminate(const struct supervisor *s, struct state *state, int signal) {
	if (state->stage == STAGE_ANNOUNCE || state->stage == STAGE_LIMIT) workers_tell(s->workers, CONTROL_QUIT);
	else if (signal == SIGINT || state->stage >= STAGE_DRAIN || !s->drain_delay_s) enter(s, state, STAGE_LIMIT);
	else enter(s, state, STAGE_ANNOUNCE);
	state->until_ms = clock_ms() + INT64_C(1000) * s->drain_delay_s;
}

static void reopen_logs(const struct supervisor *s) {
	if (s->log) log_reopen(s->log);
	if (s->error_log) log_reopen(s->error_log);
}

/* Opens the logs again, which is all that SIGHUP has to do: changed certificates and files of sites are noticed
 * anyway. */
static void reload(const struct supervisor *s) {
	char text[96];
	notice_line(LEVEL_NOTICE,
				"SIGHUP opens the logs again; everything else is taken up when it changes (SIGTERM or SIGQUIT ends)");
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_ms() * 1000);
	keeper_tell_manager(s->link, text);
	reopen_logs(s);
	keeper_tell_manager(s->link, "READY=1");
}

static void show_certificate(void *owner, const struct acme_state *state) {
	const struct certified what = {.until_s = state->until_s, .good = state->good};
	certified_set(owner, state->name, &what, state->result);
}

static void look(const struct supervisor *s, struct state *state) {
	int64_t now_ms = clock_ms();
	if (s->acme && state->stage == STAGE_SERVE)
		acme_collect(s->acme, s->status ? show_certificate : NULL, s->status ? status_certified(s->status) : NULL);
	if (s->certificates && state->stage == STAGE_SERVE && certificate_files_refresh(s->certificates))
		workers_tell(s->workers, CONTROL_CERTIFICATES);
	if (state->stage == STAGE_DRAIN && state->until_ms && now_ms >= state->until_ms) enter(s, state, STAGE_IDLE);
	if (state->stage == STAGE_ANNOUNCE &&
		(now_ms >= state->until_ms || (!s->drain_whole && !workers_connections(s->workers))))
		enter(s, state, STAGE_LIMIT);
	if (!s->watchdog_ms || state->stage != STAGE_SERVE || now_ms < state->alive_ms) return;
	if (!workers_alive(s->workers)) return;
	state->alive_ms = now_ms + s->watchdog_ms;
	keeper_tell_manager(s->link, "WATCHDOG=1");
}

/* Returns how long to wait until look() is due, which signals do not put off; -1: it never is. */
static int64_t time_to_look(const struct supervisor *s, struct state *state) {
	const bool soon = state->stage == STAGE_ANNOUNCE || (state->stage == STAGE_DRAIN && state->until_ms);
	int64_t ms = soon ? SUPERVISE_DRAIN_MS : CERTIFICATE_CHECK_S * 1000;
	const int64_t now_ms = clock_ms();
	const bool left_out = notice_tidy();
	if (left_out && ms > 1000) ms = 1000;
	if (s->watchdog_ms && s->watchdog_ms < ms) ms = s->watchdog_ms;
	if (!state->look_ms || state->look_ms > now_ms + ms) state->look_ms = now_ms + ms;
	if (!s->certificates && !s->acme && !s->watchdog_ms && !left_out && !soon) return -1;
	return state->look_ms > now_ms ? state->look_ms - now_ms : 0;
}

/* Handles a signal that the keeper has passed on. */
static void handle(const struct supervisor *s, struct state *state, int signal) {
	switch (signal) {
	case SIGINT:
	case SIGTERM: terminate(s, state, signal); break;
	case SIGQUIT: enter(s, state, STAGE_DRAIN); break;
	case SIGHUP:
		if (s->terminal) terminate(s, state, signal); /* the terminal is gone */
		else reload(s);
		break;
	case SIGUSR1: reopen_logs(s); break;
	default: break;
	}
}

/* Ends as a successor does not need this process any more. */
static void give_way(const struct supervisor *s, struct state *state) {
	const bool followed = atomic_load(&s->take_over->followed);
	if (followed && !state->lame)
		notice_line(LEVEL_NOTICE, "%s is another directory now: finishing the connections", s->take_over->directory);
	else notice_line(LEVEL_NOTICE, "a new process has taken over: finishing the connections");
	if (state->stage == STAGE_SERVE) state->until_ms = followed ? clock_ms() + SUPERVISE_IDLE_MS : 0;
	workers_tell(s->workers, CONTROL_HANDED_OVER);
	enter(s, state, state->stage == STAGE_ANNOUNCE ? STAGE_LIMIT : STAGE_DRAIN);
}

/* Handles SIGUSR2: a worker has ended, a successor has taken over, or the keeper has said something. */
static void look_at_threads(const struct supervisor *s, struct state *state) {
	const bool missing = atomic_load(&s->take_over->missing);
	const unsigned signals = atomic_exchange(&s->take_over->signals, 0);
	for (int i = 1; i < 32; i++)
		if (signals & 1U << i) handle(s, state, i);
	if (atomic_load(&s->take_over->alone)) workers_tell(s->workers, CONTROL_QUIT);
	if (missing != state->missing) workers_tell(s->workers, missing ? CONTROL_CLOSE : CONTROL_OPEN);
	state->missing = missing;
	if (take_over_happened(s->take_over) && state->stage < STAGE_DRAIN) give_way(s, state);
	if (!workers_failed(s->workers)) return;
	/* the sockets of a failed worker would collect connections that nobody accepts, and a service manager starts
	 * again */
	if (s->shares_sockets || s->link->managed) {
		enter(s, state, STAGE_LIMIT);
	} else {
		keeper_tell(s->link, KEEPER_NO_OTHER);
		take_over_close(s->take_over, s->sockets);
	}
}

/* Handles that a process beside the server (broker.h, resolver.h, acme.h) has ended. One like it can only be started
 * with another server. */
static void look_at_processes(const struct supervisor *s, struct state *state) {
	if (!child_any_has_ended() || state->stage != STAGE_SERVE || state->lame) return;
	state->lame = true;
	atomic_store(&s->take_over->lame, true);
	notice_line(LEVEL_ERROR, "a process beside the server has ended: starting another server, which takes over");
	keeper_tell(s->link, KEEPER_LAME);
}

void supervise(const struct supervisor *s, const sigset_t *signals) {
	struct state state = {.stage = STAGE_SERVE};
	while (workers_running(s->workers)) {
		const int64_t most_ms = time_to_look(s, &state);
		const int signal = keeper_wait_signal(s->link, signals, most_ms);
		if (signal == SIGUSR2) look_at_threads(s, &state);
		if (signal == SIGCHLD) look_at_processes(s, &state);
		if (clock_ms() < state.look_ms) continue;
		look(s, &state);
		state.look_ms = 0;
	}
}
