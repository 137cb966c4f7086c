/* main.c - starts and ends the process: options, sockets, privileges, workers; then waits for signals. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/acme/acme.h"
#include "gatling/acme/store.h"
#include "gatling/base/file_read.h"
#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/check.h"
#include "gatling/codec/zstd.h"
#include "gatling/explain_url.h"
#include "gatling/files/report.h"
#include "gatling/media/media_type.h"
#include "gatling/listen.h"
#include "gatling/log/error_log.h"
#include "gatling/log/log_sites.h"
#include "gatling/broker/broker.h"
#include "gatling/options/parse.h"
#include "gatling/sandbox/account.h"
#include "gatling/sandbox/sandbox.h"
#include "gatling/keeper/keeper.h"
#include "gatling/keeper/service.h"
#include "gatling/status/status.h"
#include "gatling/supervise.h"
#include "gatling/keeper/take_over.h"
#include "gatling/tls/certificate_files.h"
#include "gatling/workers.h"
#include "io/io.h"

/* Opens /dev/null for each standard stream that is closed. Otherwise a file that gets its number would get its
 * output. */
static int open_standard_streams(void) {
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) == -1)
			return notice_cannot("open", "/dev/null", strerror(errno));
	return 0;
}

/* Returns the reason, from errno, why the root cannot be served. */
static const char *root_reason(void) {
	return errno == EACCES ? "there is no permission to read and enter it" : strerror(errno);
}

/* Initializes what OpenSSL would otherwise initialize at its first use, perhaps for a client: if it failed then for
 * want of memory, it would fail for ever. Returns false without memory. */
static bool start_crypto(void) {
	unsigned char octet, digest[EVP_MAX_MD_SIZE];
	return OPENSSL_init_crypto(0, NULL) && RAND_bytes(&octet, 1) == 1 &&
		   HMAC(EVP_sha256(), &octet, 1, &octet, 1, digest, NULL);
}

/* Enters the root directory, and writes its path to directory (PATH_MAX bytes). Returns its descriptor, or -1 after
 * printing an error. */
static int enter_root(const struct options *o, char *directory, struct mounts **mounts) {
	if (!realpath(o->root, directory) || chdir(o->root) == -1) return notice_cannot("serve", o->root, root_reason());
	tzset(); /* the files of time zones are outside the root, as /proc is */
	if (!(*mounts = mounts_open(directory))) return notice_cannot("serve", o->root, strerror(ENOMEM));
	if (!start_crypto()) return notice_cannot("start", "OpenSSL", strerror(ENOMEM));
	if (geteuid() == 0 && account_chroot() == -1) return notice_cannot("chroot to", o->root, strerror(errno));
	int root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root == -1) return notice_cannot("serve", o->root, root_reason());
	return root;
}

/* Everything that lives as long as the process. */
struct process {
	struct broker *broker; /* opens files */
	struct upstreams_shared upstreams;
	struct acme *acme; /* NULL: none */
	struct workers *workers;
	struct mounts *mounts;
	struct sockets sockets;
	struct datagram_sockets datagrams;
	struct service service;
	struct keeper_link link;
	struct take_over take_over;
	struct log_file log_file;
	struct log *log;
	struct error_log error_log;
	struct certificate_files *files; /* NULL without HTTPS */
	struct status *status;           /* NULL: no status page */
	struct sandbox sandbox;
};

/* Returns the status page for a socket. It answers to the names in the options. */
static struct status *new_status(const struct options *o, int socket) {
	static struct status_names names;
	_Static_assert(1 + (int)ADDRESSES_MAX + (int)ACME_NAMES_MAX <= (int)STATUS_NAMES_MAX, "there is room for all");
	if (o->status) status_names_add(&names, o->status);
	for (unsigned i = 0; i < o->addresses; i++) status_names_add(&names, o->address[i]);
	for (unsigned i = 0; i < o->acme.names; i++) status_names_add(&names, o->acme.name[i]);
	return status_new(socket, &names);
}

/* Starts the status page, if there is one. If that fails, prints an error, and the server goes on without it. */
static void start_status(const struct options *o, struct process *p, const char *about) {
	struct counters *worker[WORKERS_MAX];
	int sockets[STATUS_SOCKETS_MAX];
	unsigned count = p->sockets.count < STATUS_SOCKETS_MAX ? p->sockets.count : STATUS_SOCKETS_MAX;
	if (!p->status) return;
	for (int i = 0; i < o->workers; i++) worker[i] = workers_counters(p->workers, (unsigned)i);
	for (unsigned i = 0; i < count; i++) sockets[i] = p->sockets.at[i].fd;
	int error = status_start(p->status, about, worker, (unsigned)o->workers, sockets, count);
	if (error) (void)notice_cannot("show", "the status", strerror(error));
}

/* Prints the hosts that have directories. */
static void announce_hosts(const struct options *o, int root) {
	const struct docroot docroot = {.root = root, .symlinks_inside = o->site.symlinks_inside};
	struct hosts hosts;
	(void)hosts_find(&hosts, &docroot, o->site.vhosts); /* without memory, those that were found */
	char *text = hosts_summary(&hosts, strlen("gatling: hosts: "));
	if (text) notice_line(LEVEL_INFO, "hosts: %s", text);
	free(text);
	hosts_free(&hosts);
}

/* Starts the status page, and then limits the system calls, since everything that needs more of them is done: the
 * workers have their loops, the addresses are known. Prints the sandbox and what is served, and tells the service
 * manager. */
static void confine_and_announce(const struct options *o, struct process *p, const char *directory, int root) {
	char *addresses = listen_describe(&p->sockets), *state = NULL, *about = NULL;
	if (asprintf(&about, "%s on %s (%s, %d %s)", directory, addresses ? addresses : "", io_mechanism(), o->workers,
				 o->workers == 1 ? "worker" : "workers") == -1)
		about = NULL;
	start_status(o, p, about ? about : directory);
	sandbox_limit_calls(&p->sandbox);
	char *parts = sandbox_describe(&p->sandbox);
	notice_line(LEVEL_INFO, "sandbox: %s", parts ? parts : "");
	announce_hosts(o, root);
	notice_line(LEVEL_INFO, "serving %s", about ? about : directory);
	keeper_tell_serving(&p->link, root);
	/* after --take-over the keeper is not the process that the service manager has started */
	if (asprintf(&state, "READY=1\nMAINPID=%ld\nSTATUS=serving %s on %s", (long)p->link.keeper, directory,
				 addresses ? addresses : "") != -1)
		keeper_tell_manager(&p->link, state);
	free(state);
	free(about);
	free(addresses);
	free(parts);
}

/* Loads the media types in a file. Returns 0, or -1 after printing an error. */
static int load_types(const char *file) {
	char place[PATH_MAX + 16];
	int line = media_types_load(file);
	if (line == 0) return 0;
	if (line == -1) return notice_cannot("read", file, file_load_error());
	snprintf(place, sizeof place, "%s:%d", file, line);
	return notice_cannot("use", place, "it is not a media type and its extensions");
}

/* Has the connector refuse the file of a listening socket, if it has one. Returns 0, or -1 after printing an error. */
static int refuse_own(struct process *p, int fd) {
	char path[SOCKET_PATH_MAX];
	if (!socket_path(fd, path) || broker_refuse(p->upstreams.connector, path) == 0) return 0;
	if (errno == ENOENT) return 0; /* nobody can connect to it */
	return notice_cannot("keep upstreams apart from the server's own socket", path, strerror(errno));
}

/* Starts the process that connects to unix sockets, if any upstream has one, but never to those on which this server
 * listens. user: whose rights it has; NULL: those of this process. Returns 0, or -1 after printing an error. */
static int start_connector(const struct options *o, struct process *p, const struct account *user) {
	bool any = false;
	for (unsigned i = 0; i < o->site.upstreams.count; i++) {
		const char *directory = o->site.upstreams.at[i].directory, *name;
		const char *path = directory ? directory : o->site.upstreams.at[i].path;
		if (!path) continue;
		any = true;
		if (broker_add(p->upstreams.connector, path, directory ? BROKER_SOCKETS : BROKER_SOCKET, &name) == -1)
			return notice_cannot("pass requests on to", path, strerror(errno));
	}
	if (!any) return 0;
	for (unsigned i = 0; i < p->sockets.count; i++)
		if (refuse_own(p, p->sockets.at[i].fd) == -1) return -1;
	if (p->sockets.status && refuse_own(p, p->sockets.status) == -1) return -1;
	if (o->take_over && refuse_own(p, p->take_over.listener) == -1) return -1;
	broker_hurry(p->upstreams.connector); /* workers wait for it */
	if (broker_start(p->upstreams.connector, o->sandbox, user) == 0) return 0;
	return notice_cannot("start", "the process that connects to unix sockets", strerror(errno));
}

/* Starts the process that looks up the names of upstreams, and loads the authorities that their certificates have to be
 * of, if any upstream needs that. Returns 0, or -1 after printing an error. */
static int prepare_upstreams(const struct options *o, struct process *p, const struct account *user) {
	const struct upstreams_allowed *allowed = &o->site.upstreams;
	const char *file, *wrong;
	if (resolver_start(allowed, o->sandbox, user, &p->upstreams.resolver) == -1)
		return notice_cannot("start", "the process that looks up upstreams", strerror(errno));
	p->upstreams.allowed = allowed;
	if (!upstreams_allow_tls(allowed)) return 0;
	p->upstreams.tls = tls_client_context(o->upstream_ca, &file, &wrong);
	return p->upstreams.tls ? 0 : notice_cannot("trust authorities of upstreams", file, wrong);
}

/* Returns whether a log can be written in a directory, or sets errno. */
static bool can_log_in(const struct log_file *directory) {
	struct log_file file = *directory;
	file.name = LOG_NO_SITE ".log";
	if (log_file_open(&file) == -1) return false;
	log_file_close(&file);
	return true;
}

/* Starts the process that opens files later, opens the logs, and looks for certificates. Returns 0, or -1 after
 * printing an error. */
static int start_broker(const struct options *o, struct process *p) {
	const char *const path[] = {o->error_log, o->log_file};
	struct log_file *const file[] = {&p->error_log.file, &p->log_file};
	for (int i = 0; i < 2; i++)
		if (path[i] && log_file_place(file[i], p->broker, path[i]) == -1)
			return notice_cannot("log to", path[i], log_file_reason(errno));
	if (o->log_dir && log_file_place_directory(&p->log_file, p->broker, o->log_dir) == -1)
		return notice_cannot("log to", o->log_dir, log_file_reason(errno));
	if (certificate_files_new(&o->tls, o->root, p->broker, &p->files) == -1) return -1;
	if (broker_start(p->broker, o->sandbox, NULL) == -1)
		return notice_cannot("start", "the process that opens files", strerror(errno));
	for (int i = 0; i < 2; i++) {
		if (path[i] && log_file_open(file[i]) == -1) return notice_cannot("log to", path[i], log_file_reason(errno));
		if (path[i] && i == 0) error_log_open(&p->error_log);
	}
	if (o->log_dir && !can_log_in(&p->log_file)) return notice_cannot("log to", o->log_dir, log_file_reason(errno));
	certificate_files_find(&o->tls, &p->files);
	if (!p->files && !o->log_file && !o->log_dir && !o->error_log) broker_stop(p->broker);
	return 0;
}

/* Reports a root that cannot be entered, an index.html in it whose permissions do not allow it to be served, or hosts
 * that have no site. Returns 0, or -1 if it cannot be entered. */
static int report_closed_root(const struct options *o, const char *directory, int root) {
	const struct docroot docroot = {.root = root, .symlinks_inside = o->site.symlinks_inside};
	struct stat st;
	if (fstat(root, &st) == 0 && access(".", X_OK) == -1 && errno == EACCES) {
		notice(0, "%s cannot enter %s (mode %04o): chmod o+x", o->user ? o->user : "the server", directory,
			   (unsigned)st.st_mode & 07777);
		return -1;
	}
	if (o->site.vhosts != VHOSTS_ONLY) report_unserved(&docroot, "index.html");
	hosts_report(&docroot, o->site.vhosts);
	return 0;
}

/* Reports if no socket has port 80, where an authority asks for proof (RFC 8555, section 8.3). */
static void note_port_of_proof(const struct sockets *sockets) {
	unsigned port = 0;
	for (unsigned i = 0; i < sockets->count; i++) {
		if (!sockets->at[i].secure) port = socket_port_number(&sockets->at[i].address);
		if (port == 80) return;
	}
	if (port) notice(0, "the authority asks for proof at port 80 of each name, not %u: it has to lead here", port);
	else notice(0, "the authority asks for proof at port 80 of each name, and only HTTPS has a socket");
}

/* Does everything that needs privileges or may fail, in this order: starts the processes for certificates, names of
 * upstreams, and files (the broker), gets the listening sockets, starts the connector, which has to know them, enters
 * the root, becomes the user, limits privileges, loads the certificates, limits files. Writes the path of the root to
 * directory. Returns the descriptor of the root, or -1 after printing an error. */
static int prepare(const struct options *o, struct process *p, char *directory) {
	struct account id = {0};
	if (o->mime && load_types(o->mime) == -1) return -1;
	const char *unknown = o->user ? account_find(o->user, &id) : NULL;
	if (unknown) return notice_cannot("become user", o->user, unknown);
	if (acme_start(&o->acme, o->root, &p->acme) == -1 || prepare_upstreams(o, p, o->user ? &id : NULL) == -1 ||
		start_broker(o, p) == -1)
		return -1;
	if (take_over_begin(&p->take_over, o->take_over, &p->sockets, &p->datagrams) == -1) return -1;
	if (!p->files && o->tls.https != HTTPS_OFF && sockets_any_secure(&p->sockets))
		return notice_cannot("take over without HTTPS", NULL, "there is no certificate any more; --no-https allows it");
	if (listen_open(o, p->files, &p->sockets, workers_array(p->workers)) == -1 ||
		listen_datagrams(o, &p->sockets, &p->datagrams) == -1)
		return -1;
	if (p->sandbox.on && p->sandbox.connects &&
		listen_reserve(workers_array(p->workers), (unsigned)o->workers, &p->sandbox.listens_from,
					   &p->sandbox.listens_count) == -1)
		return -1;
	if (listen_status(o, &p->sockets) == -1 || take_over_bind(&p->take_over) == -1) return -1;
	if (start_connector(o, p, o->user ? &id : NULL) == -1) return -1;
	if (p->sockets.status && !(p->status = new_status(o, p->sockets.status)))
		return notice_cannot("show", "the status", strerror(errno));
	int root = enter_root(o, directory, &p->mounts);
	if (root == -1) return -1;
	if (geteuid() == 0) sandbox_note(&p->sandbox, "chroot", 0);
	sandbox_refuse_privileges();
	const char *wrong = o->user ? account_become(&id) : NULL;
	if (wrong) return notice_cannot("become user", o->user, wrong);
	sandbox_drop_capabilities(&p->sandbox);
	if (p->files && certificate_files_load(p->files) == -1) return -1;
	const char *broken = p->files && take_over_has_old(&p->take_over) ? certificate_files_broken(p->files) : NULL;
	if (broken) return notice_cannot("take over without the certificate", broken, "it cannot be used");
	if (o->site.symlinks_inside && !platform_can_open_beneath())
		return notice_cannot("keep", "--symlinks inside", "this system has no openat2(2) or O_RESOLVE_BENEATH");
	if (p->acme) note_port_of_proof(&p->sockets);
	if (geteuid() == 0) notice(0, "running as root: -u USER gives that up");
	if (report_closed_root(o, directory, root) == -1 && take_over_follows(&p->take_over))
		return notice_cannot("serve", directory, "there is no permission to enter it");
	sandbox_limit_files(&p->sandbox);
	return root;
}

/* Opens the directory of older versions, which is outside the root. Returns 0, or -1 after printing an error. */
static int open_older(struct options *o, struct sandbox *s) {
	if (!o->dictionaries) return 0;
	if (!zstd_is_built) return notice_cannot("keep", "--dictionaries", "this build has no zstd");
	s->also = o->site.older = open(o->dictionaries, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->also == -1 ? notice_cannot("read", o->dictionaries, strerror(errno)) : 0;
}

/* Requires HTTPS, as --https does, if the service manager has passed a socket for it. Refuses to combine such sockets
 * with --take-over. Returns 0, or -1 after printing an error. */
static int consider_activation(struct options *o, const struct sockets *sockets) {
	if (sockets->activated && o->take_over)
		return notice_cannot("use", "--take-over", "the service manager keeps the sockets (LISTEN_FDS)");
	if (o->tls.https == HTTPS_TRY && sockets_any_secure(sockets)) o->tls.https = HTTPS_ON;
	return 0;
}

/* Starts the logs and the workers, and takes over. Returns 0 when the server serves, or -1 after printing an error. */
static int start(const struct options *o, struct process *p, const char *directory, int root, bool kernel_tls) {
	if (o->log != LOG_OFF && !(p->log = log_start(&p->log_file, o->log == LOG_JSON)))
		return notice_cannot("start", "the log", strerror(errno));
	if (o->error_log && error_log_start(&p->error_log) == -1)
		return notice_cannot("start", "the error log", strerror(errno));
	if (workers_start(p->workers, root, p->mounts, p->log, p->files, kernel_tls) == -1) return -1;
	resolver_wait(p->upstreams.resolver);
	if (take_over_finish(&p->take_over) == -1) return -1;
	listen_start(o, &p->sockets);
	listen_route(o, &p->datagrams);
	(void)take_over_offer(&p->take_over, &p->sockets, &p->datagrams,
						  o->root); /* if it fails, the next process cannot take over */
	notice_serving();
	confine_and_announce(o, p, directory, root);
	notice_echo(false);
	workers_tell(p->workers, CONTROL_SERVE);
	return 0;
}

static void end(struct process *p) {
	status_free(p->status);
	workers_free(p->workers);
	mounts_close(p->mounts);
	log_stop(p->log);
	(void)notice_tidy();
	error_log_stop(&p->error_log);
	certificate_files_free(p->files);
	acme_free(p->acme);
	broker_free(p->broker);
	broker_free(p->upstreams.connector);
	resolver_stop(p->upstreams.resolver);
	SSL_CTX_free(p->upstreams.tls);
	take_over_close(&p->take_over, &p->sockets);
	datagram_sockets_close(&p->datagrams);
}

int main(int argc, char **argv) {
	struct options options;
	char directory[PATH_MAX];
	static struct process p = {.log_file = LOG_FILE_STDOUT,
							   .error_log.file = LOG_FILE_STDOUT,
							   .take_over = TAKE_OVER_NONE,
							   .datagrams = DATAGRAM_SOCKETS_NONE};
	sigset_t signals;

	notice_open();
	if (open_standard_streams() == -1) return 1;
	options_parse(&options, argc, argv);
	notice_threshold(options.error_level);
	if (options.check) {
		const bool wrong = options.mime && load_types(options.mime) == -1;
		return check(&options, wrong);
	}
	if (options.explain) return explain_url(&options);
	if (options.certificates) return store_show(options.acme.directory);
	if (options.top) return status_top(options.top);
	const char *refused = sandbox_refuses();
	if (refused) return notice_cannot("serve without the system call", refused, strerror(errno));
	supervise_block_signals(&signals);
	p.sandbox = (struct sandbox){.on = options.sandbox,
								 .connects = upstreams_allow_tcp(&options.site.upstreams),
								 .beneath = options.site.symlinks_inside,
								 .also = -1};
	const bool terminal = isatty(STDERR_FILENO);
	if (service_open(&p.service, &p.sockets, &p.datagrams.udp) == -1 || consider_activation(&options, &p.sockets) == -1)
		return 1;
	const struct keeper_options keeper = {
		.root = options.root, .terminal = terminal, .sandbox = options.sandbox, .runs_programs = options.acme.on};
	/* the keeper stays in it: what follows runs in its children, a server each */
	if (keeper_start(&keeper, &p.service, &p.sockets, &p.datagrams.udp, &signals, &p.link) == -1) return 1;
	if (p.link.predecessor != -1) notice_serving(); /* it has the standard error of that server */
	/* platform_has_ktls() is called as root; with kTLS, SIGIO does not report that a socket has room again (Linux 6.1,
	 * 6.12) */
	const bool kernel_tls = strcmp(io_mechanism(), "sigio") != 0 && platform_has_ktls();
	(void)io_raise_descriptor_limit(); /* if it fails, the server works with fewer */
	take_over_open(&p.take_over, &p.link);

	int root = 0;
	p.broker = broker_new();
	p.upstreams.connector = broker_new();
	p.workers = workers_new(&options);
	if (!p.workers || !p.broker || !p.upstreams.connector)
		root = notice_cannot("start", "the workers", strerror(errno));
	if (root != -1) root = open_older(&options, &p.sandbox);
	if (root != -1) root = prepare(&options, &p, directory);
	for (int i = 0; i < options.workers && p.workers; i++) {
		workers_array(p.workers)[i].shown = p.status;
		workers_array(p.workers)[i].upstreams = &p.upstreams;
		workers_array(p.workers)[i].datagrams = &p.datagrams;
		workers_array(p.workers)[i].directory = directory;
		workers_array(p.workers)[i].challenges = p.acme ? acme_challenges(p.acme) : NULL;
	}
	bool serves = root != -1 && start(&options, &p, directory, root, kernel_tls) == 0;
	if (!serves) take_over_give_up(&p.take_over);
	if (!serves) error_log_stop(&p.error_log);
	if (root != -1 && !serves) _exit(1); /* workers that have started still run */
	const struct supervisor supervisor = {.terminal = terminal,
										  .shares_sockets = options.take_over || p.status || p.sockets.activated,
										  .drain_delay_s = options.drain_delay_s,
										  .drain_whole = options.drain_whole,
										  .workers = p.workers,
										  .log = p.log,
										  .error_log = p.error_log.log,
										  .certificates = p.files,
										  .acme = p.acme,
										  .watchdog_ms = p.service.watchdog_ms,
										  .link = &p.link,
										  .take_over = &p.take_over,
										  .sockets = &p.sockets,
										  .status = p.status};
	if (serves) {
		broker_hurry(p.broker); /* signals wait for it */
		supervise(&supervisor, &signals);
	}
	bool failed = !serves || workers_failed(p.workers);
	end(&p);
	return failed;
}
