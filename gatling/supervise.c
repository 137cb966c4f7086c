/* supervise.c - see supervise.h. */
#include "gatling/supervise.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>

#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/tls/certificate_files.h"

/* The stages of the end. */
enum stage {
	STAGE_SERVE,
	STAGE_ANNOUNCE, /* each connection ends with its next response; new ones are still accepted */
	STAGE_DRAIN,    /* the same, but no new ones are accepted */
	STAGE_LIMIT     /* the same as STAGE_DRAIN, with a time limit */
};

struct state {
	enum stage stage;
	int64_t until_ms; /* the end of STAGE_ANNOUNCE */
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
	sigaddset(signals, SIGALRM); /* look() is due */
	sigaddset(signals, SIGUSR1); /* the log file was renamed */
	sigaddset(signals, SIGUSR2); /* a worker has ended, or a successor has taken over */
	pthread_sigmask(SIG_BLOCK, signals, NULL);
}

static void enter(const struct supervisor *s, struct state *state, enum stage stage) {
	static const enum control_message message[] = {
		[STAGE_ANNOUNCE] = CONTROL_ANNOUNCE, [STAGE_DRAIN] = CONTROL_DRAIN, [STAGE_LIMIT] = CONTROL_LIMIT};
	if (stage <= state->stage) return;
	if (state->stage == STAGE_SERVE && !take_over_happened(s->take_over)) service_tell(s->service, "STOPPING=1");
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
	else if (signal == SIGINT || state->stage == STAGE_DRAIN || !s->drain_delay_s) enter(s, state, STAGE_LIMIT);
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
	service_tell(s->service, text);
	reopen_logs(s);
	service_tell(s->service, "READY=1");
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
	if (state->stage == STAGE_ANNOUNCE &&
		(now_ms >= state->until_ms || (!s->drain_whole && !workers_connections(s->workers))))
		enter(s, state, STAGE_LIMIT);
	if (!s->service->watchdog_ms || state->stage != STAGE_SERVE || now_ms < state->alive_ms) return;
	if (!workers_alive(s->workers)) return;
	state->alive_ms = now_ms + s->service->watchdog_ms;
	service_tell(s->service, "WATCHDOG=1");
}

/* Sets the timer, so that a SIGALRM comes when look() is due. Other signals do not put it off. */
static void set_timer(const struct supervisor *s, struct state *state) {
	int64_t ms = state->stage == STAGE_ANNOUNCE ? SUPERVISE_DRAIN_MS : CERTIFICATE_CHECK_S * 1000;
	const int64_t now_ms = clock_ms();
	const bool left_out = notice_tidy();
	if (left_out && ms > 1000) ms = 1000;
	if (s->service->watchdog_ms && s->service->watchdog_ms < ms) ms = s->service->watchdog_ms;
	if (!state->look_ms || state->look_ms > now_ms + ms) state->look_ms = now_ms + ms;
	ms = state->look_ms > now_ms ? state->look_ms - now_ms : 1;
	const struct itimerval timer = {.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};
	if (s->certificates || s->acme || s->service->watchdog_ms || left_out || state->stage == STAGE_ANNOUNCE)
		(void)setitimer(ITIMER_REAL, &timer, NULL);
}

/* Handles SIGUSR2: a worker has ended, or a successor has taken over. */
static void look_at_threads(const struct supervisor *s, struct state *state) {
	if (take_over_happened(s->take_over) && state->stage < STAGE_DRAIN) {
		notice_line(LEVEL_NOTICE, "a new process has taken over: finishing the connections");
		enter(s, state, state->stage == STAGE_ANNOUNCE ? STAGE_LIMIT : STAGE_DRAIN);
	}
	/* the sockets of a failed worker would collect connections that nobody accepts, and a service manager starts
	 * again */
	if (workers_failed(s->workers) && (s->shares_sockets || service_is_managed(s->service)))
		enter(s, state, STAGE_LIMIT);
}

void supervise(const struct supervisor *s, const sigset_t *signals) {
	struct state state = {.stage = STAGE_SERVE};
	while (workers_running(s->workers)) {
		int signal;
		set_timer(s, &state);
		if (sigwait(signals, &signal) != 0) continue;
		switch (signal) {
		case SIGINT:
		case SIGTERM: terminate(s, &state, signal); break;
		case SIGQUIT: enter(s, &state, STAGE_DRAIN); break;
		case SIGHUP:
			if (s->terminal) terminate(s, &state, signal); /* the terminal is gone */
			else reload(s);
			break;
		case SIGUSR1: reopen_logs(s); break;
		case SIGUSR2: look_at_threads(s, &state); break;
		default: break;
		}
		if (clock_ms() < state.look_ms) continue;
		look(s, &state);
		state.look_ms = 0;
	}
}
