/* download.c - a large download from a real gatling on the loopback, megabyte by megabyte; alone, or with another
 * beside it; of a file in memory, on the disk, or scattered over the disk as those that came by BitTorrent are. After
 * the "tput" of Felix von Leitner's "Benchmarking BSD and Linux" (2003). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kbench/kbench.h"
#include "bench/machine.h"

enum {
	MEGABYTE = 1000000,
	PIECE = 250000, /* of a scattered file: each is written by itself, in random order */
	BLOCK = 64 * 1024,
	FILES = 2,
	HEAD_MAX = 4096,
	DIRECTORY_MAX = PATH_MAX - 16
};

/* --- the files --- */

static int write_at(int fd, off_t offset, size_t length) {
	static char block[BLOCK];
	for (size_t at = 0; at < length;) {
		size_t rest = length - at < BLOCK ? length - at : BLOCK;
		ssize_t n = pwrite(fd, block, rest, offset + (off_t)at);
		if (n <= 0) return -1;
		at += (size_t)n;
	}
	return 0;
}

/* Each piece is on the disk, where there is room behind the last, before the next is written. */
static int write_scattered(int fd, unsigned pieces) {
	unsigned *order = calloc(pieces, sizeof *order);
	int result = order ? 0 : -1;
	for (unsigned i = 0; i < pieces && order; i++) {
		unsigned j = (unsigned)random() % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < pieces && result == 0; i++) {
		result = write_at(fd, (off_t)order[i] * PIECE, PIECE);
		if (result == 0) result = fdatasync(fd);
	}
	free(order);
	return result;
}

/* A file of so many megabytes in the directory. 0, or -1 with errno. */
static int make_file(const struct run *run, const char *path) {
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd == -1) return -1;
	int result = run_kind(run, "scattered") ? write_scattered(fd, run->count * (MEGABYTE / PIECE))
											: write_at(fd, 0, (size_t)run->count * MEGABYTE);
	if (result == 0) result = fchmod(fd, 0644);
	if (result == 0 && !run_kind(run, "memory")) {
		result = fdatasync(fd);
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	close(fd);
	return result;
}

/* --- the server --- */

/* The gatling that was built with this program. */
static void find_server(const struct settings *s, char *path) {
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(path, '/');
	if (slash) snprintf(slash, (size_t)(path + PATH_MAX - slash), "/../gatling");
	if (s->server) snprintf(path, PATH_MAX, "%s", s->server);
}

/* Starts it for the directory; its port, or -1. */
static int start_server(const char *program, const char *directory, pid_t *pid) {
	int words[2], port = -1;
	char line[512];
	if (pipe(words) == -1) return -1;
	*pid = fork();
	if (*pid == 0) {
		dup2(words[1], STDERR_FILENO);
		close(words[0]);
		execl(program, "gatling", "-c", directory, "-i", "127.0.0.1", "-p", "0", "-n", "-j", "1", (char *)NULL);
		_exit(1);
	}
	close(words[1]);
	FILE *in = fdopen(words[0], "r");
	while (in && port == -1 && fgets(line, sizeof line, in)) {
		const char *at = strstr(line, "http://127.0.0.1:");
		if (at) port = (int)strtol(at + strlen("http://127.0.0.1:"), NULL, 10);
	}
	return port; /* the pipe stays: it may have more to say */
}

/* --- the downloads --- */

/* Asks for a file and reads the head; the descriptor, or -1 with errno. */
static int request(int port, const char *name) {
	char text[HEAD_MAX];
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), n = 0;
	if (fd == -1 || connect(fd, (struct sockaddr *)&to, sizeof to) == -1) return -1;
	int length = snprintf(text, sizeof text, "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", name);
	if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length) return -1;
	while (n < HEAD_MAX - 1 && recv(fd, text + n, 1, 0) == 1) {
		text[++n] = '\0';
		if (n >= 4 && memcmp(text + n - 4, "\r\n\r\n", 4) == 0) break;
	}
	if (n > 12 && memcmp(text + 9, "200", 3) == 0) return fd;
	errno = EPROTO;
	return -1;
}

/* Reads megabytes, and keeps at which rate each came if it is asked to. 0, or -1 with errno. */
static int download(struct run *run, int fd, bool keep) {
	static char block[BLOCK];
	int64_t before = machine_clock_ns();
	size_t have = 0;
	for (unsigned n = 0; n < run->count;) {
		size_t rest = MEGABYTE - have < BLOCK ? MEGABYTE - have : BLOCK;
		ssize_t got = recv(fd, block, rest, 0);
		if (got <= 0) {
			if (got == 0) errno = ECONNRESET;
			return -1;
		}
		have += (size_t)got;
		if (have < MEGABYTE) continue;
		int64_t now = machine_clock_ns(), rate = MEGABYTE * INT64_C(1000000) / (now - before);
		if (keep) run_point(run, n, &rate);
		before = now;
		have = 0;
		n++;
	}
	return 0;
}

/* Downloads the other file again and again. */
static pid_t start_competitor(struct run *run, int port) {
	pid_t pid = fork();
	if (pid) return pid;
	while (true) {
		int fd = request(port, "1");
		if (fd == -1 || download(run, fd, false) == -1) _exit(1);
		close(fd);
	}
}

static int measure_from(struct run *run, int port) {
	pid_t competitor = run->settings->streams > 1 ? start_competitor(run, port) : 0;
	int fd = competitor == -1 ? -1 : request(port, "0");
	int result = fd == -1 || download(run, fd, true) == -1 ? run_stop(run, "download", 0) : 0;
	run_end(run);
	if (competitor > 0) kill(competitor, SIGKILL);
	if (competitor > 0) waitpid(competitor, NULL, 0);
	return result;
}

static int measure_in(struct run *run, const char *directory) {
	char path[PATH_MAX], program[PATH_MAX];
	pid_t server = -1;
	find_server(run->settings, program);
	if (access(program, X_OK) == -1) return run_skip(run, "%s is not there: --server PATH", program);
	for (unsigned i = 0; i < run->settings->streams && i < FILES; i++) {
		snprintf(path, sizeof path, "%s/%u", directory, i);
		if (make_file(run, path) == -1) return run_stop(run, path, 0);
	}
	int port = start_server(program, directory, &server);
	int result = port == -1 ? run_stop(run, program, 0) : measure_from(run, port);
	if (server > 0) kill(server, SIGTERM);
	if (server > 0) waitpid(server, NULL, 0);
	return result;
}

static int measure(struct run *run) {
	char directory[DIRECTORY_MAX], path[PATH_MAX];
	snprintf(directory, sizeof directory, "%s/kbench-XXXXXX", run->settings->directory);
	if (!mkdtemp(directory) || chmod(directory, 0755) == -1) return run_stop(run, run->settings->directory, 0);
	int result = measure_in(run, directory);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "%s/%u", directory, i);
		(void)unlink(path);
	}
	(void)rmdir(directory);
	return result;
}

const struct benchmark download_benchmark = {
	.name = "download",
	.summary = "a large download from gatling, megabyte by megabyte",
	.how = "On the loopback; memory: the file is in memory; disk: it is not; scattered: nor does it lie there in one "
		   "piece; "
		   "with two streams another download is going on.",
	.n = "megabytes",
	.columns = {"kilobytes_s"},
	.kinds = {"memory", "disk", "scattered"},
	.count = 300,
	.warm_up = 10,
	.options = OPTION_DIRECTORY | OPTION_STREAMS | OPTION_SERVER,
	.network = true,
	.measure = measure,
};
