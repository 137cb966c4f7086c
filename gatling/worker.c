/* worker.c - see worker.h. run_turn() shows everything that a worker does. */
#include "gatling/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/conn/conn.h"
#include "gatling/exchange/response_batch.h"
#include "gatling/http/date.h"
#include "gatling/http/field_line.h"
#include "gatling/hpack/hpack.h"
#include "gatling/load/accept.h"
#include "gatling/load/kernel_memory.h"
#include "gatling/load/min_rate.h"
#include "gatling/load/shed.h"
#include "gatling/tls/certificate_files.h"
#include "gatling/upstream/proxied.h"

/* Returns a worker's part of what all workers have together, rounded up. */
static unsigned part_of(const struct worker *w, int all) {
	const unsigned workers = (unsigned)w->options->workers;
	return ((unsigned)all + workers - 1) / workers;
}

/* Divides the descriptors that the limit allows: sets *cached and *open for files, upstreams_max and connections_max.
 * Only large files that are being sent, at most 1/FILES_SHARE of the limit, are not reserved: if they leave no free
 * descriptor, the worker closes a connection, or leaves new ones in the kernel's queue. Returns 0, or -1 with EMFILE if
 * there are too few descriptors. datagrams: those of QUIC. */
static int count_limits(struct worker *w, unsigned datagrams, unsigned *cached, unsigned *open) {
	struct rlimit limit;
	const struct options *o = w->options;
	unsigned most = 1U << 20;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < most) most = (unsigned)limit.rlim_cur;
	if (!w->private_descriptors) most /= (unsigned)o->workers;
	*cached = most / CACHE_SHARE < CACHE_DESCRIPTORS_MAX ? most / CACHE_SHARE : CACHE_DESCRIPTORS_MAX;
	if (o->site.cache_files) *cached = part_of(w, o->site.cache_files);
	*open = *cached + most / FILES_SHARE;
	w->upstreams_max = o->site.upstreams.count ? most / UPSTREAMS_SHARE : 0;
	unsigned taken = *cached + w->acceptor.listeners + datagrams + DESCRIPTORS_RESERVED + w->upstreams_max;
	if (most <= taken) {
		errno = EMFILE;
		return -1;
	}
	w->context.connections_max = most - taken;
	const unsigned part = part_of(w, o->connections);
	w->context.limited = part && part < w->context.connections_max; /* by --limit connections */
	if (w->context.limited) w->context.connections_max = part;
	w->context.connections_short = w->context.connections_max - w->context.connections_max * (100 - SHED_FROM) / 100;
	return 0;
}

/* Uses the current certificates from now on. */
static void use_certificates(struct worker *w) {
	struct certificates *current = certificate_files_current(w->certificates);
	/* with --acme, a site that has no certificate yet is served without HTTPS */
	if (w->options->acme.on && !w->options->https_redirect) w->context.site.covered = current;
	if (w->context.quic) quic_use_certificates(w->context.quic, current, w->options->strict_sni);
	tls_use_certificates(w->context.tls, current);
}

/* Returns how much memory connections may take before it has to be compared with each limit. */
static size_t small_memory(const struct worker *w) {
	size_t least = BUDGET_RETURN;
	if (w->context.memory_max < least) least = w->context.memory_max;
	return w->options->conn.client_memory < least ? (size_t)w->options->conn.client_memory : least;
}

static int start(struct worker *w) {
	unsigned kept = 0, cached, open;
	int *keep = malloc((3 * LISTENERS_MAX + 5 + datagram_sockets_most(w->datagrams)) * sizeof *keep);
	if (!keep) return -1;
	for (unsigned i = 0; i < w->acceptor.listeners; i++) {
		keep[kept++] = w->acceptor.listener[i].fd;
		if (w->acceptor.listener[i].again != w->acceptor.listener[i].fd) keep[kept++] = w->acceptor.listener[i].again;
		if (w->acceptor.listener[i].holder != -1) keep[kept++] = w->acceptor.listener[i].holder;
	}
	keep[kept++] = w->root;
	if (w->options->site.older != -1) keep[kept++] = w->options->site.older;
	if (mounts_descriptor(w->mounts) != -1) keep[kept++] = mounts_descriptor(w->mounts);
	keep[kept++] = w->control.fd;
	const int connector = broker_channel(w->upstreams->connector);
	if (connector != -1) keep[kept++] = connector;
	const unsigned datagrams =
		datagram_sockets_used(w->datagrams, w->number, (unsigned)w->options->workers, &keep[kept]);

	w->private_descriptors = io_private_descriptors(keep, kept + datagrams);
	free(keep);
	if (count_limits(w, datagrams, &cached, &open) == -1) return -1;

	counters = &w->counters;
	w->context.loop = io_loop_new();
	w->context.options = &w->options->conn;
	w->context.shed = &w->shed;
	w->context.fair = &w->fair;
	w->context.turns = &fair_turns;
	w->context.kinds[CONN_TCP] = &conn_tcp;
	w->context.refusal = accept_refusal;
	w->context.make_room = accept_make_room;
	w->context.read_most = CONN_SCRATCH;
	w->acceptor.context = &w->context;
	w->acceptor.workers = (unsigned)w->options->workers;
	w->context.memory_max = w->options->conn.memory / (unsigned)w->options->workers;
	w->context.memory_small = small_memory(w);
	w->context.batches = (struct batch_pool){.now_ns = &w->context.site.now_ns,
											 .queue = w->log,
											 .style.format = w->options->log,
											 .by_site = w->options->log_dir};
	w->context.exchanges = (struct exchange_context){.site = &w->context.site,
													 .batches = &w->context.batches,
													 .limits = w->limits,
													 .trust = &w->options->conn.trust};
	w->context.http2 = (struct http2_context){.exchanges = &w->context.exchanges,
											  .lines = shared_lines_new(),
											  .memory_max = w->upstreams_max ? BUDGET_PASSES : BUDGET_CONNECTION};
	if (!w->context.loop || !w->context.http2.lines || workspace_open() == -1 ||
		site_context_open(&w->context.site, w->context.loop, w->root, w->mounts, &w->options->site,
						  (unsigned)w->options->workers, cached, open) == -1)
		return -1;
	if (w->certificates) {
		w->context.tls = tls_worker_new(w->options->strict_sni, w->kernel_tls, &w->context.tls_memory);
		if (!w->context.tls) return -1;
		w->context.quic = quic_new(&w->context, w->datagrams, w->number, (unsigned)w->options->workers);
		use_certificates(w);
	}
	const struct upstreams_options upstreams = {.loop = w->context.loop,
												.shared = w->upstreams,
												.tls_memory = &w->context.tls_memory,
												.connections = w->upstreams_max,
												.compresses = w->options->upstream_gzip};
	if (w->upstreams_max && !(w->context.exchanges.upstreams = upstreams_new(&upstreams))) return -1;
	w->context.site.challenges = w->challenges;
	w->context.site.directory = w->directory;
	if (w->directory[1] && docroot_is_chroot(&w->context.site.tree.docroot))
		w->context.site.tree.docroot.outside = w->directory;
	basic_auth_set_root(w->context.site.auth, w->directory, w->options->root);
	for (unsigned i = 0; i < w->acceptor.listeners; i++) {
		w->context.site.https |= w->acceptor.listener[i].secure;
		if (w->acceptor.listener[i].secure && (w->options->https_redirect || w->options->acme.on))
			w->context.site.https_port = w->acceptor.listener[i].port;
	}
	for (unsigned i = 0; i < w->acceptor.listeners; i++)
		if (io_fd(w->context.loop, w->acceptor.listener[i].fd, &w->acceptor.listener[i]) == -1) return -1;
	if (io_fd(w->context.loop, w->control.fd, &w->control) == -1) return -1;
	(void)io_eagain_read(w->context.loop, w->control.fd); /* so that io_wantread() fails now if it cannot be watched */
	return io_wantread(w->context.loop, w->control.fd);
}

/* Begins to accept, and reads the files of the first site. */
static void serve(struct worker *w) {
	accept_resume(&w->acceptor);
	if (w->context.quic) quic_serve(w->context.quic);
	(void)sites_find(w->context.site.sites, SLICE(""), 0, io_now(w->context.loop));
	tree_begin(&w->context.site.tree);
}

/* --- memory --- */

/* Called after each connection has had its turn, since many may have come at once: see shed_over_budget(). */
static void keep_to_budget(struct worker *w) {
	if (conn_context_memory(&w->context) > w->context.memory_small) shed_over_budget(&w->context);
}

/* Gives memory back to the system when much less is in use than at the peak. */
static void release_memory(struct worker *w) {
	if (w->context.memory_peak <= BUDGET_RETURN) return;
	const size_t taken = conn_context_memory(&w->context);
	if (taken > w->context.memory_peak / 4) return;
	platform_release_memory();
	w->context.memory_peak = taken;
}

/* --- the status page --- */

/* Sets the values for the status page that are not counted as they change. */
static void publish(struct worker *w) {
	const struct cache_usage cache = cache_usage(w->context.site.cache);
	struct timespec cpu = {0};
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	gauge_set(COUNT_CPU_NS, (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec);
	gauge_set(COUNT_LOG_DROPPED, w->log ? log_dropped(w->log) : 0);
	gauge_set(GAUGE_CONNECTIONS_MAX, w->context.connections_max);
	gauge_set(GAUGE_MEMORY, conn_context_memory(&w->context));
	gauge_set(GAUGE_MEMORY_MAX, w->context.memory_max);
	gauge_set(GAUGE_CLIENT_MEMORY, w->context.memory);
	gauge_set(GAUGE_CLIENT_MEMORY_MAX, w->options->conn.client_memory);
	gauge_set(GAUGE_CACHE_FILES, cache.files);
	gauge_set(GAUGE_CACHE_BYTES, cache.bytes);
	gauge_set(GAUGE_CACHE_DESCRIPTORS, cache.descriptors);
	gauge_set(GAUGE_JOBS, site_context_jobs(&w->context.site));
	gauge_set(GAUGE_HUNG, remote_hung(w->context.site.remote));
}

/* --- ending --- */

static void close_connections(struct worker *w) {
	for (int fd = 0; fd < io_fd_bound(w->context.loop); fd++) {
		struct conn *c = conn_of(&w->context, fd);
		if (c) conn_close(&w->context, c);
	}
}

/* Asks the connections to end. closes: first accepts those that wait in the queues of the kernel, so that no request
 * there is lost, and closes the listeners. */
static void drain(struct worker *w, enum conn_drain how, bool closes) {
	if (how > w->context.draining) w->context.draining = how;
	if (closes) accept_last(&w->acceptor);
	if (w->context.quic) quic_drain(w->context.quic, closes);
	for (int fd = 0; fd < io_fd_bound(w->context.loop); fd++) {
		struct conn *c = conn_of(&w->context, fd);
		if (c) conn_drain(&w->context, c);
	}
}

static void report(const struct worker *w, enum control_message message) {
	char byte = (char)message;
	(void)!write(w->control.fd, &byte, 1); /* ignored: the main thread may have ended */
}

static void handle_control(struct worker *w) {
	char message;
	ssize_t n;
	while ((n = io_tryread(w->context.loop, w->control.fd, &message, 1)) >= 0) {
		if (n == 0) message = CONTROL_QUIT; /* the main thread has ended */
		switch (message) {
		case CONTROL_SERVE: serve(w); break;
		case CONTROL_PING: report(w, CONTROL_ALIVE); break;
		case CONTROL_ANNOUNCE:
			w->context.site.leaving = true;
			drain(w, DRAIN_ANSWERED, false);
			break;
		case CONTROL_HANDED_OVER:
			if (w->context.quic) quic_hand_over(w->context.quic);
			break;
		case CONTROL_DRAIN: drain(w, DRAIN_ANSWERED, true); break;
		case CONTROL_IDLE: drain(w, DRAIN_IDLE, true); break;
		case CONTROL_CLOSE: w->context.site.closed = true; break;
		case CONTROL_OPEN: w->context.site.closed = false; break;
		case CONTROL_LIMIT:
			w->context.site.leaving = true;
			if (w->options->conn.timeout_s)
				w->drain_until_ms = io_now(w->context.loop) + (int64_t)w->options->conn.timeout_s * 1000;
			drain(w, DRAIN_IDLE, true);
			break;
		case CONTROL_CERTIFICATES: use_certificates(w); break;
		case CONTROL_QUIT: w->quit = true; return;
		}
	}
}

/* --- the loop --- */

static void update_dates(struct worker *w) {
	time_t now = time(NULL);
	w->context.site.now_ns = io_now_ns(w->context.loop);
	w->context.site.now_ms = w->context.site.now_ns / 1000000;
	const unsigned port = w->context.quic ? quic_port(w->context.quic) : 0;
	if (now == w->context.batches.second && port == w->quic_port) return;
	site_context_look(&w->context.site);
	w->quic_port = port;
	char date[DATE_LENGTH + 1], *text = w->common_text;
	char *end = field_line_put(text, SLICE("Server"), SLICE("gatling"));
	end = field_line_put(end, SLICE("Date"), (struct slice){.at = date, .length = date_format(date, now)});
	w->context.common_fields[0] = (struct slice){.at = text, .length = (size_t)(end - text)};
	if (w->options->hsts_s) { /* RFC 6797: only over TLS */
		end = text_copy(end, SLICE("Strict-Transport-Security: max-age="));
		end = text_copy(text_copy_number(end, (uint64_t)w->options->hsts_s), SLICE("\r\n"));
	}
	if (w->quic_port) { /* RFC 7838: the same is to be had over HTTP/3 */
		end = text_copy_number(text_copy(end, SLICE("Alt-Svc: h3=\":")), w->quic_port);
		end = text_copy(end, SLICE("\"; ma=86400\r\n"));
	}
	w->context.common_fields[1] = (struct slice){.at = text, .length = (size_t)(end - text)};
	for (int i = 0; i < 2; i++) {
		const struct slice lines = w->context.common_fields[i];
		struct http2_context *http2 = &w->context.http2;
		http2->common_block[i] =
			(struct slice){.at = w->common_block[i], .length = hpack_fields(lines, w->common_block[i])};
		http2->common_ready[i] = (struct ready_block){0};
		ready_block_add(&http2->common_ready[i], http2->lines, lines, w->common_ready[i]);
	}
	if (w->context.quic) quic_use_fields(w->context.quic, w->context.common_fields[1]);
	batch_pool_set_time(&w->context.batches, now);
	counters_second();
	if (w->shown) publish(w);
}

static enum cookie_kind kind_of(const void *cookie) { return (enum cookie_kind) * (const uint8_t *)cookie; }

/* Runs a connection that is ready: conn_readable() or conn_writable(). One call in FAIR_SAMPLE is timed. */
static void run_conn(struct worker *w, fair_fn *ready, struct conn *c) {
	if (++w->fair.calls % FAIR_SAMPLE == 0) fair_measure(&w->fair, ready, &w->context, c);
	else ready(&w->context, c);
	keep_to_budget(w);
}

/* This and other functions here are not inline, since that would make a turn of the loop take more instructions for
 * connections that do not need them. */
__attribute__((noinline)) static void run_upstream(struct worker *w, struct upstream_link *link,
												   void (*run)(struct proxied *proxied),
												   void (*run_idle)(struct upstreams *, struct upstream_link *)) {
	const bool samples = link->proxied && ++w->fair.calls % FAIR_SAMPLE == 0;
	const uint64_t network = samples ? peer_network(&link->client) : 0;
	const int64_t begun_ns = network ? io_read_clock() : 0;
	if (link->proxied) run(link->proxied);
	else run_idle(w->context.exchanges.upstreams, link);
	if (begun_ns) fair_count(&w->fair, network, (uint64_t)(io_read_clock() - begun_ns));
	keep_to_budget(w);
}

/* Returns whether a connection has to wait for others, see fair_waits(). */
static bool waits(struct worker *w, const void *conn) {
	return w->fair.waiting && fair_waits(&w->fair, conn_peer(conn), w->context.site.now_ms);
}

/* Calls io_postpone_read() or io_postpone_write(). */
static bool postpone(struct worker *w, bool (*how)(io_loop *loop, int fd), int fd) {
	const bool postponed = how(w->context.loop, fd);
	w->postponed |= postponed;
	return postponed;
}

/* Reads from an upstream, unless the client of its response has to wait for others, which it may. */
__attribute__((noinline)) static void upstream_readable(struct worker *w, struct upstream_link *link, int fd,
														bool may_wait) {
	const bool waits = may_wait && link->proxied && w->fair.waiting && fair_has(&w->fair, peer_network(&link->client));
	if (!waits || !postpone(w, io_postpone_read, fd)) run_upstream(w, link, proxied_readable, upstreams_idle_readable);
}

static void readable(struct worker *w, int fd) {
	void *cookie = io_cookie(w->context.loop, fd);
	switch (kind_of(cookie)) {
	case COOKIE_CONNECTION:
		if (waits(w, cookie) && postpone(w, io_postpone_read, fd)) break;
		if (w->acceptor.sampling) accept_note_wait(&w->acceptor, cookie, fd);
		run_conn(w, conn_readable, cookie);
		break;
	case COOKIE_LISTENER: accept_later(&w->acceptor, cookie); break;
	case COOKIE_CONTROL: handle_control(w); break;
	case COOKIE_UPSTREAM: upstream_readable(w, cookie, fd, true); break;
	case COOKIE_QUIC: quic_readable(cookie); break;
	}
}

static void writable(struct worker *w, int fd) {
	void *cookie = io_cookie(w->context.loop, fd);
	if (kind_of(cookie) == COOKIE_UPSTREAM) run_upstream(w, cookie, proxied_writable, upstreams_idle_readable);
	else if (kind_of(cookie) == COOKIE_QUIC) quic_writable(cookie);
	else if (!waits(w, cookie) || !postpone(w, io_postpone_write, fd)) run_conn(w, conn_writable, cookie);
}

/* Runs the connections of addresses that take most of the time, after all others: at least one reader and one writer,
 * and more as long as fair_turn_ns() allows. */
static void run_postponed(struct worker *w) {
	io_loop *loop = w->context.loop;
	int64_t turn_ns = 0, until_ns = 0;
	w->postponed = false;
	w->context.read_most = CONN_PIECE;
	for (int fd = io_postponed_read(loop); fd != -1; fd = io_read_clock() < until_ns ? io_postponed_read(loop) : -1) {
		void *cookie = io_cookie(loop, fd);
		if (!turn_ns) turn_ns = fair_turn_ns(&w->fair, w->context.site.now_ms);
		if (!until_ns) until_ns = io_read_clock() + turn_ns;
		w->postponed = true; /* there may be more */
		if (kind_of(cookie) == COOKIE_UPSTREAM) upstream_readable(w, cookie, fd, false);
		else run_conn(w, conn_readable, cookie);
	}
	until_ns = 0;
	for (int fd = io_postponed_write(loop); fd != -1; fd = io_read_clock() < until_ns ? io_postponed_write(loop) : -1) {
		if (!turn_ns) turn_ns = fair_turn_ns(&w->fair, w->context.site.now_ms);
		if (!until_ns) until_ns = io_read_clock() + turn_ns;
		w->postponed = true;
		run_conn(w, conn_writable, io_cookie(loop, fd));
	}
	w->context.read_most = CONN_SCRATCH;
}

__attribute__((noinline)) static void timed_out(struct worker *w, int fd) {
	void *cookie = io_cookie(w->context.loop, fd);
	if (kind_of(cookie) == COOKIE_LISTENER) accept_resume(&w->acceptor);
	else if (kind_of(cookie) == COOKIE_UPSTREAM) run_upstream(w, cookie, proxied_timed_out, upstreams_idle_timed_out);
	else conn_timed_out(&w->context, cookie);
	keep_to_budget(w); /* requests that have waited too long for a job are answered */
}

/* Returns the shorter of two times; -1 stands for no limit. */
static int sooner(int one, int other) { return one == -1 || (other != -1 && other < one) ? other : one; }

/* Returns whether accept_all() has anything to do. */
static bool accepts(const struct acceptor *a) { return a->readies || a->sampling || a->resting; }

/* Does what is due of the work that there is from time to time. Returns after how many milliseconds more is due, as far
 * as that is known now; -1: none is. */
static int look_for_work(struct worker *w, int64_t now) {
	int kernel = kernel_memory_due(&w->context, now);
	if (kernel == 0) {
		kernel_memory_enforce(&w->context);
		kernel = kernel_memory_due(&w->context, now);
	}
	int rate = min_rate_due(&w->context, now), site = site_context_due(&w->context.site, now);
	if (rate == 0) {
		min_rate_enforce(&w->context);
		rate = min_rate_due(&w->context, now);
	}
	if (site == 0) {
		site_context_tidy(&w->context.site, now);
		site = site_context_due(&w->context.site, now);
	}
	int log = w->log ? log_due(w->log, now) : -1; /* last: connections that were closed are logged */
	if (log == 0) {
		log_flush(w->log, now);
		log = log_due(w->log, now);
	}
	return sooner(sooner(log, site), sooner(rate, kernel));
}

_Static_assert((int)LOOK_MS <= (int)LOG_DELAY_MS, "no line is handed to the log too late");

/* Does the work that is due from time to time. Returns how many milliseconds the loop may wait; -1: no limit. What
 * happens in a turn may make more due, so it is looked for again LOOK_MS after the last time, at the latest. */
static int do_due_work(struct worker *w) {
	const int64_t now = w->context.site.now_ms;
	int limit;
	if (now < w->look_ms) {
		limit = (int)(w->look_ms - now);
	} else {
		limit = look_for_work(w, now);
		w->look_ms = now + sooner(limit, LOOK_MS);
	}
	if (accepts(&w->acceptor)) limit = sooner(limit, accept_due(&w->acceptor, now));
	if (w->shown) limit = sooner(limit, PUBLISH_MS);
	if (w->context.draining && w->drain_until_ms)
		limit = sooner(limit, w->drain_until_ms > now ? (int)(w->drain_until_ms - now) : 0);
	return limit;
}

static bool ended(const struct worker *w) {
	if (w->quit) return true;
	return w->context.draining && !w->acceptor.listeners &&
		   (!w->context.connections || (w->drain_until_ms && io_now(w->context.loop) >= w->drain_until_ms));
}

static int run_turn(struct worker *w) {
	if (io_wait(w->context.loop, do_due_work(w)) == -1) return -1;
	update_dates(w);
	w->context.handshakes = 0;
	if (io_woken(w->context.loop)) {
		site_context_collect(&w->context.site);
		keep_to_budget(w); /* requests that waited for a job have continued */
	}
	for (int fd; (fd = io_canread(w->context.loop)) != -1;) readable(w, fd);
	w->context.share =
		w->context.site.now_ms - w->context.at_once_ms < CONN_AT_ONCE_MS ? CONN_SHARE_LEAST : CONN_SHARE_MOST;
	uint64_t until = w->context.sent + w->context.share; /* the writers that are left come first in the next turn */
	for (int fd; w->context.sent < until && (fd = io_canwrite(w->context.loop)) != -1;) writable(w, fd);
	if (w->postponed) run_postponed(w);
	/* new clients come after those that have begun to load a page */
	if (accepts(&w->acceptor)) accept_all(&w->acceptor);
	gauge_set(COUNT_SENT, w->context.sent);
	for (int fd; (fd = io_timedout(w->context.loop)) != -1;) timed_out(w, fd);
	if (w->context.quic) {
		quic_turn(w->context.quic); /* last: any of those above may have something to send on it */
		shed_over_quic_budget(&w->context);
	}
	release_memory(w);
	return 0;
}

int worker_run(struct worker *w) {
	int result = 0;
	if (start(w) == -1) {
		w->error = errno;
		report(w, CONTROL_FAILED);
		return -1;
	}
	report(w, CONTROL_READY);
	while (result == 0 && !ended(w)) {
		result = run_turn(w);
		if (result == -1) notice_line(LEVEL_ERROR, "%s failed: %s", io_mechanism(), strerror(errno));
	}
	accept_stop(&w->acceptor);
	close_connections(w);
	quic_free(w->context.quic);
	if (w->log) log_flush(w->log, io_now(w->context.loop)); /* other workers may go on for long */
	upstreams_free(w->context.exchanges.upstreams);
	response_batch_free_spares(&w->context.batches);
	w->hangs = !site_context_close(&w->context.site);
	tls_worker_free(w->context.tls);
	shared_lines_free(w->context.http2.lines);
	for (int i = 0; i < CONN_KINDS; i++) free(w->context.rate.of[i].window);
	free(w->context.kernel.window);
	free(w->context.proxy);
	if (!w->hangs) io_loop_free(w->context.loop);
	close(w->control.fd);
	return result;
}
