/* main.c - starts and ends the process: options, sockets, privileges, workers; then waits for signals. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/opener.h"
#include "gatling/base/platform.h"
#include "gatling/base/unserved.h"
#include "gatling/check.h"
#include "gatling/http/media_type.h"
#include "gatling/listen.h"
#include "gatling/options.h"
#include "gatling/sandbox/sandbox.h"
#include "gatling/tls/certificate_files.h"
#include "gatling/workers.h"
#include "io/io.h"

/* Opens standard streams that are closed: a file that gets the number of one would get its output. */
static int open_standard_streams(void) {
	int fd;
	do fd = open("/dev/null", O_RDWR);
	while (fd != -1 && fd <= STDERR_FILENO);
	return fd == -1 ? notice_cannot("open", "/dev/null", strerror(errno)) : close(fd);
}

/* The ids of a user, looked up before the root changes. */
struct account {
	uid_t uid;
	gid_t gid;
};

/* Parses UID or UID:GID in digits. Returns false if it is neither. */
static bool parse_ids(const char *text, struct account *id) {
	char *end;
	unsigned long uid = strtoul(text, &end, 10), gid = uid;
	if (*text < '0' || *text > '9') return false;
	const struct passwd *user = getpwuid((uid_t)uid);
	if (user) gid = user->pw_gid;
	if (*end == ':' && end[1] >= '0' && end[1] <= '9') gid = strtoul(end + 1, &end, 10);
	*id = (struct account){.uid = (uid_t)uid, .gid = (gid_t)gid};
	return !*end && uid < UINT32_MAX && gid < UINT32_MAX;
}

static int find_user(const char *name, struct account *id) {
	errno = 0;
	const struct passwd *user = getpwnam(name);
	if (!user && parse_ids(name, id)) return 0;
	if (!user) return notice_cannot("become user", name, errno ? strerror(errno) : "no such user");
	*id = (struct account){.uid = user->pw_uid, .gid = user->pw_gid};
	return 0;
}

static int become(const char *name, const struct account *id) {
	if (setgroups(1, &id->gid) == -1 || setgid(id->gid) == -1 || setuid(id->uid) == -1)
		return notice_cannot("become user", name, strerror(errno));
	return 0;
}

/* The leak checker of a sanitized build needs /proc, which a chroot hides. */
#ifdef __SANITIZE_ADDRESS__
static bool has_other_root;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return has_other_root; }
#endif

/* Enters the root directory. Returns its descriptor, or -1 after printing an error. */
static int enter_root(const struct options *o, char *directory) {
	if (!realpath(o->root, directory) || chdir(o->root) == -1) return notice_cannot("serve", o->root, strerror(errno));
	tzset(); /* its files are outside the root */
	OPENSSL_init_crypto(0, NULL);
	if (geteuid() == 0 && chroot(".") == -1) return notice_cannot("chroot to", o->root, strerror(errno));
#ifdef __SANITIZE_ADDRESS__
	has_other_root = geteuid() == 0;
#endif
	int root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root == -1) return notice_cannot("serve", o->root, strerror(errno));
	return root;
}

/* Handles signals until the workers have ended. Looks after the certificates and the log, either of which may be NULL.
 * After the first SIGTERM the workers finish their responses, after the second they do not. */
static void handle_signals(const struct workers *workers, struct log *log, const sigset_t *signals,
						   struct certificate_files *files) {
	bool stopping = false;
	while (workers_running(workers)) {
		int signal;
		if (files) alarm(CERTIFICATE_CHECK_S);
		if (sigwait(signals, &signal) != 0) continue;
		if (signal == SIGALRM && certificate_files_refresh(files)) workers_tell(workers, CONTROL_CERTIFICATES);
		if (signal == SIGUSR1 && log) log_reopen(log);
		if (signal == SIGHUP) workers_tell(workers, CONTROL_DRAIN);
		if (signal != SIGINT && signal != SIGTERM) continue;
		workers_tell(workers, stopping ? CONTROL_QUIT : CONTROL_LIMIT);
		stopping = true;
	}
}

/* Limits the system calls, once all that needs more of them is done: the workers have their loops, the addresses are
 * known. Prints what is in force and what is served. */
static void confine_and_announce(const struct options *o, struct workers *workers, const char *directory,
								 struct sandbox *sandbox) {
	char *addresses = listen_describe(o, workers_array(workers));
	sandbox_limit_calls(sandbox);
	char *parts = sandbox_describe(sandbox);
	fprintf(stderr, "gatling: sandbox: %s\n", parts ? parts : "");
	fprintf(stderr, "gatling: serving %s on %s (%s, %d %s)\n", directory, addresses ? addresses : "", io_mechanism(),
			o->workers, o->workers == 1 ? "worker" : "workers");
	free(addresses);
	free(parts);
}

/* Returns 0, or -1 after printing an error. */
static int load_types(const char *file) {
	char place[PATH_MAX + 16];
	int line = mime_load(file);
	if (line == 0) return 0;
	if (line == -1) return notice_cannot("read", file, strerror(errno));
	snprintf(place, sizeof place, "%s:%d", file, line);
	return notice_cannot("use", place, "it is not a media type and its extensions");
}

/* Starts the process that opens files again later. Returns 0, or -1 after printing an error. */
static int start_opener(const struct options *o, struct opener *opener, struct log_file *log_file,
						struct certificate_files **files) {
	if (o->log_file && log_file_place(log_file, opener, o->log_file) == -1)
		return notice_cannot("log to", o->log_file, strerror(errno));
	if (certificate_files_new(&o->tls, o->root, opener, files) == -1) return -1;
	if (opener_start(opener, o->sandbox) == -1)
		return notice_cannot("start", "the process that opens files", strerror(errno));
	if (o->log_file && log_file_open(log_file) == -1) return notice_cannot("log to", o->log_file, strerror(errno));
	certificate_files_find(&o->tls, files);
	if (!*files && !o->log_file) opener_stop(opener);
	return 0;
}

/* Reports a directory or index.html without the permissions to serve it. */
static void report_closed_root(const struct options *o, const char *directory, int root) {
	const struct docroot docroot = {.root = root};
	struct stat st;
	if (fstat(root, &st) == 0 && access(".", X_OK) == -1)
		notice(0, "%s cannot enter %s (mode %04o): chmod o+x", o->user ? o->user : "the server", directory,
			   (unsigned)st.st_mode & 07777);
	else if (o->site.vhosts != VHOSTS_ONLY) unserved_report(&docroot, "index.html");
}

/* Does everything that takes privileges or may fail, in this order: starts the opener, binds the addresses, enters the
 * root, becomes the user, limits privileges and files. *files: NULL without HTTPS. Returns the descriptor of the root,
 * or -1 after printing an error. */
static int prepare(const struct options *o, struct worker *workers, char *directory, struct opener *opener,
				   struct log_file *log_file, struct certificate_files **files, struct sandbox *sandbox) {
	struct account id = {0};
	if (o->mime && load_types(o->mime) == -1) return -1;
	if (o->user && find_user(o->user, &id) == -1) return -1;
	if (start_opener(o, opener, log_file, files) == -1 || listen_open(o, *files, workers) == -1) return -1;
	int root = enter_root(o, directory);
	if (root == -1) return -1;
	if (geteuid() == 0) sandbox_note(sandbox, "chroot", 0);
	sandbox_refuse_privileges();
	if (o->user && become(o->user, &id) == -1) return -1;
	sandbox_drop_capabilities(sandbox);
	if (*files && certificate_files_load(*files) == -1) return -1;
	if (o->site.symlinks_inside && !platform_can_open_beneath())
		return notice_cannot("keep", "--symlinks inside", "this system has no openat2(2) or O_RESOLVE_BENEATH");
	if (geteuid() == 0) notice(0, "running as root: -u USER gives that up");
	report_closed_root(o, directory, root);
	sandbox_limit_files(sandbox);
	return root;
}

static void block_signals(sigset_t *signals) {
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the log may reach the limit of file sizes */
	sigemptyset(signals);
	sigaddset(signals, SIGHUP);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGALRM); /* time to check the certificates */
	sigaddset(signals, SIGUSR1); /* the log file was renamed */
	sigaddset(signals, SIGUSR2); /* a worker has ended */
	pthread_sigmask(SIG_BLOCK, signals, NULL);
}

int main(int argc, char **argv) {
	struct options options;
	char directory[PATH_MAX];
	struct log_file log_file = LOG_FILE_STDOUT;
	struct log *log = NULL;
	struct certificate_files *files = NULL;
	struct opener *opener;
	struct sandbox sandbox = {0};
	sigset_t signals;
	int root = -1;

	if (open_standard_streams() == -1) return 1;
	options_parse(&options, argc, argv);
	if (options.check) return check(&options);
	block_signals(&signals);
	sandbox.on = options.sandbox;
	sandbox.beneath = options.site.symlinks_inside;
	/* to be called as root; with kTLS, SIGIO does not tell when a socket has room again (Linux 6.1, 6.12) */
	bool kernel_tls = strcmp(io_mechanism(), "sigio") != 0 && platform_has_ktls();
	(void)io_raise_descriptor_limit(); /* the server works with fewer, too */

	opener = opener_new();
	struct workers *workers = workers_new(&options);
	if (!workers || !opener) notice_cannot("start", "the workers", strerror(errno));
	else root = prepare(&options, workers_array(workers), directory, opener, &log_file, &files, &sandbox);
	if (root != -1 && options.log != LOG_OFF && !(log = log_start(&log_file, options.log == LOG_JSON)))
		root = notice_cannot("start", "the log", strerror(errno));
	if (root != -1) {
		if (workers_start(workers, root, log, files, kernel_tls) == -1)
			_exit(1); /* workers that have started still run */
		confine_and_announce(&options, workers, directory, &sandbox);
		workers_tell(workers, CONTROL_SITE);
		handle_signals(workers, log, &signals, files);
	}
	bool failed = root == -1 || workers_failed(workers);
	workers_free(workers);
	log_stop(log);
	certificate_files_free(files);
	opener_free(opener);
	return failed;
}
