/* server.c - see server.h. */
#include "tests/quic/server.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/workspace.h"
#include "gatling/load/accept.h"
#include "gatling/load/fair.h"
#include "gatling/load/shed.h"
#include "gatling/status/counters.h"
#include "tests/quic/network.h"
#include "tests/quic/require.h"

enum {
	JOB_MS = 10000,
	CACHED = 10,
	OPEN = 20,
	USED_MAX = 2 + 2 * SERVER_PROCESSES * SERVER_WORKERS,
	TURNS_MAX = 10000
};

/* A worker, whose context outlives its QUIC side. */
struct worker {
	struct conn_context context;
	struct fair fair;
	struct quic *quic; /* NULL: it does not run */
};

struct process {
	struct datagram_sockets sockets;
	struct worker worker[SERVER_WORKERS];
	unsigned workers; /* 0: it does not run */
};

static const struct site_options site_options = {.cache = 1 << 20};
static struct conn_options options;
static struct counters counted;
static struct certificates *certificates;
static struct process process[SERVER_PROCESSES];
static unsigned last;               /* the process that receives */
static const struct worker *chosen; /* its worker that does */

/* --- workers --- */

static int refuse_nobody(struct conn_context *w, const struct peer *peer) {
	(void)w, (void)peer;
	return 0;
}

static void make_context(struct conn_context *w, struct fair *fair) {
	*w = (struct conn_context){.options = &options, .connections_max = 10000, .connections_short = 9000};
	w->refusal = refuse_nobody;
	w->make_room = accept_make_room;
	w->turns = &fair_turns;
	w->fair = fair;
	w->memory_max = (size_t)64 << 20;
	w->share = CONN_SHARE_MOST;
	w->loop = io_loop_new();
	w->batches = (struct batch_pool){.now_ns = &w->site.now_ns};
	w->exchanges = (struct exchange_context){.site = &w->site, .batches = &w->batches, .trust = &options.trust};
	w->http2.memory_max = BUDGET_CONNECTION;
	require(w->loop && site_context_open(&w->site, w->loop, site_open(), NULL, &site_options, 1, CACHED, OPEN) == 0);
	batch_pool_set_time(&w->batches, time(NULL));
}

static void free_context(struct conn_context *w) {
	if (!w->loop) return;
	response_batch_free_spares(&w->batches);
	site_context_close(&w->site);
	close(w->site.tree.docroot.root);
	io_loop_free(w->loop);
}

static void open_worker(struct process *p, unsigned number) {
	struct worker *w = &p->worker[number];
	if (!w->context.loop) make_context(&w->context, &w->fair);
	w->context.draining = DRAIN_NOT;
	w->context.quic = w->quic = quic_new(&w->context, &p->sockets, number, p->workers);
	require(w->quic);
	w->quic->bbr = false; /* whatever this machine prefers */
	quic_use_certificates(w->quic, certificates, false);
	quic_use_fields(w->quic, SLICE("Server: gatling\r\n"));
	quic_serve(w->quic);
	w->quic->reachable = true; /* so that there are no other datagrams than those of the test */
	w->quic->probed_ms = io_now(w->context.loop);
}

/* Takes a descriptor out of a loop, but leaves it open. */
static void release(io_loop *loop, int fd) {
	const int copy = dup(fd);
	require(copy != -1);
	io_close(loop, fd);
	require(dup2(copy, fd) == fd);
	close(copy);
}

static void close_worker(const struct process *p, struct worker *w) {
	int used[USED_MAX];
	require(datagram_sockets_most(&p->sockets) <= USED_MAX);
	quic_free(w->quic);
	w->quic = NULL;
	for (unsigned n = datagram_sockets_used(&p->sockets, (unsigned)(w - p->worker), p->workers, used); n--;)
		if (io_cookie(w->context.loop, used[n])) release(w->context.loop, used[n]);
	require(!w->context.connections && !w->context.quic_memory);
}

/* Waits for threads that find and read files: their time is none here. */
static void finish_jobs(struct conn_context *w) {
	for (int i = 0; site_context_jobs(&w->site); i++) {
		const struct timespec millisecond = {.tv_nsec = 1000000};
		require(i < JOB_MS);
		(void)nanosleep(&millisecond, NULL);
		require(io_wait(w->loop, 0) == 0);
		site_context_collect(&w->site);
	}
}

/* Does a turn of a worker's loop. Returns whether it has received anything, which it may have passed on. */
static bool turn(struct worker *w) {
	struct conn_context *context = &w->context;
	struct quic_cookie *socket = &w->quic->cookie[0];
	bool any = false;
	require(io_wait(context->loop, 0) == 0);
	context->site.now_ns = io_now_ns(context->loop);
	context->site.now_ms = context->site.now_ns / 1000000;
	for (; w == chosen && network_has_arrived(); any = true) quic_readable(socket);
	for (int ready; (ready = io_canread(context->loop)) != -1; any = true)
		quic_readable(io_cookie(context->loop, ready));
	if (socket->held.bytes) quic_writable(socket); /* the kernel's socket is never full */
	for (int ready; (ready = io_canwrite(context->loop)) != -1;) quic_writable(io_cookie(context->loop, ready));
	quic_turn(w->quic);
	shed_over_quic_budget(context);
	if (!site_context_jobs(&context->site)) return any;
	finish_jobs(context);
	quic_turn(w->quic);
	return any;
}

/* --- processes --- */

static bool is_of_server(int fd) {
	for (unsigned i = 0; i < SERVER_PROCESSES; i++)
		if (process[i].workers && process[i].sockets.udp.at[0].fd == fd) return true;
	return false;
}

/* Begins a process, which has the channels of those before it. It owns the socket. */
static void open_process(struct process *p, int fd, unsigned workers) {
	require(workers && workers <= SERVER_WORKERS && fd != -1);
	require(sockets_add(&p->sockets.udp, fd, true, 1) == 0 && datagram_sockets_open(&p->sockets, workers) == 0);
	p->sockets.udp.at[0].places = 1;
	p->workers = workers;
	for (unsigned i = 0; i < workers; i++) open_worker(p, i);
	last = (unsigned)(p - process);
	chosen = p->worker;
}

void server_open(unsigned workers) {
	const union io_address any = {.ipv4 = {.sin_family = AF_INET}};
	options = (struct conn_options){.client_memory = BUDGET_WORKER};
	network_open(is_of_server);
	process->sockets = (struct datagram_sockets)DATAGRAM_SOCKETS_NONE;
	open_process(process, quic_open_socket(&any.any, sizeof any.ipv4, false), workers);
}

void server_succeed(unsigned workers) {
	struct process *old = &process[last], *p = old + 1;
	require(last + 1 < SERVER_PROCESSES);
	p->sockets = (struct datagram_sockets)DATAGRAM_SOCKETS_NONE;
	for (unsigned i = 0; i < old->sockets.channels; i++) {
		const struct datagram_channel *c = &old->sockets.channel[i];
		const struct datagram_note note = datagram_sockets_note(&old->sockets, c);
		require(datagram_sockets_inherit(&p->sockets, dup(c->outer), &note) == 0);
	}
	open_process(p, dup(old->sockets.udp.at[0].fd), workers);
	for (unsigned i = 0; i < old->workers; i++) {
		quic_hand_over(old->worker[i].quic);
		old->worker[i].context.draining = DRAIN_ANSWERED;
		quic_drain(old->worker[i].quic, true);
	}
}

void server_end(unsigned number) {
	struct process *p = &process[number];
	for (unsigned i = 0; i < p->workers; i++) close_worker(p, &p->worker[i]);
	if (p->workers) datagram_sockets_close(&p->sockets);
	p->workers = 0;
}

void server_close(void) {
	for (unsigned i = 0; i < SERVER_PROCESSES; i++) server_end(i);
	network_close();
}

void server_choose(unsigned worker) { chosen = &process[last].worker[worker % process[last].workers]; }

unsigned server_last(void) { return last; }

struct quic *server_worker(unsigned number, unsigned worker) {
	return worker < process[number].workers ? process[number].worker[worker].quic : NULL;
}

struct quic *server_quic(void) {
	return process->worker->quic;
}
struct conn_options *server_options(void) {
	return &options;
}

void server_set_up(void) {
	counters = &counted;
	site_make();
	certificates = site_certificates();
	require(workspace_open() == 0);
}

void server_tear_down(void) {
	for (unsigned i = 0; i < SERVER_PROCESSES; i++)
		for (unsigned k = 0; k < SERVER_WORKERS; k++) free_context(&process[i].worker[k].context);
	certificates_release(certificates);
	site_remove();
}

/* Each worker does a turn, and another one as long as any of them may have passed on something. */
void server_turn(void) {
	bool any = true;
	for (int n = 0; any; n++) {
		require(n < TURNS_MAX);
		any = false;
		for (unsigned i = 0; i < SERVER_PROCESSES; i++)
			for (unsigned k = 0; k < process[i].workers; k++) any |= turn(&process[i].worker[k]);
	}
}

static int64_t next_of(const struct quic *e) {
	int64_t next = e->alarm.deadline_ns ? e->alarm.deadline_ns : INT64_MAX;
	for (int i = 0; i < e->places; i++) {
		const struct quic_connection *c = e->place[i];
		if (c && c->alarm.deadline_ns && c->alarm.deadline_ns < next) next = c->alarm.deadline_ns;
	}
	return next;
}

int64_t server_next_ns(void) {
	int64_t next = INT64_MAX;
	for (unsigned i = 0; i < SERVER_PROCESSES; i++) {
		for (unsigned k = 0; k < process[i].workers; k++) {
			const int64_t other = next_of(process[i].worker[k].quic);
			if (other < next) next = other;
		}
	}
	return next;
}
