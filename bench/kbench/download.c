/* download.c - measures a large download from gatling on the loopback, megabyte by megabyte, alone or beside another
 * one. The file is in memory, on the disk, or scattered over the disk, like files that BitTorrent wrote. After the
 * "tput" of Felix von Leitner's "Benchmarking BSD and Linux" (2003). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/client/response.h"
#include "bench/kbench/net.h"
#include "bench/machine.h"

/* ext4(5); neither the C library's headers nor the kernel's have it. */
struct move_extent {
	uint32_t reserved, donor_fd;
	uint64_t orig_start, donor_start, len, moved_len; /* in blocks */
};
#define EXT4_IOC_MOVE_EXT _IOWR('f', 15, struct move_extent)

enum {
	MEGABYTE = 1000000,
	PIECE = 256 * 1024, /* bytes; a scattered file consists of such pieces */
	PIECE_BLOCKS = PIECE / 4096,
	BUSY_MAX = 64, /* attempts in total */
	WAIT_S = 30,   /* for the server, at most */
	BLOCK = 64 * 1024,
	FILES = 2,
	HEAD_MAX = 4096,
	SAID_MAX = 1024
};

/* --- the files --- */

/* Writes random bytes, since some file systems would not store bytes of one value. */
static int write_file(int fd, size_t length) {
	static unsigned block[BLOCK / sizeof(unsigned)];
	for (size_t i = 0; i < BLOCK / sizeof(unsigned); i++) block[i] = (unsigned)random();
	for (size_t at = 0; at < length;) {
		ssize_t n = pwrite(fd, block, length - at < BLOCK ? length - at : BLOCK, (off_t)at);
		if (n <= 0) return -1;
		at += (size_t)n;
	}
	return fdatasync(fd);
}

/* Returns the number of pieces in which the file is on the disk, or 0 if it is not known. */
static unsigned extents(int fd) {
	struct fiemap map = {.fm_length = FIEMAP_MAX_OFFSET, .fm_flags = FIEMAP_FLAG_SYNC};
	return ioctl(fd, FS_IOC_FIEMAP, &map) == -1 ? 0 : map.fm_mapped_extents;
}

/* Writes a file to the disk and drops it from memory: otherwise its pieces cannot be exchanged (EBUSY). */
static void forget_file(int fd) {
	(void)fdatasync(fd);
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Exchanges the pieces of a file for those of another file of the same length, in random order. Only ext4 lets a
 * program choose where bytes are stored (Documentation/filesystems/ext4/, EXT4_IOC_MOVE_EXT, e4defrag(8)). Returns 0 or
 * -1. */
static int scatter(int fd, int donor, unsigned pieces) {
	unsigned *order = calloc(pieces, sizeof *order), busy = 0;
	int result = order ? 0 : -1;
	for (unsigned i = 0; order && i < pieces; i++) {
		unsigned j = (unsigned)random() % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	forget_file(fd);
	forget_file(donor);
	for (unsigned i = 0; i < pieces && result == 0; i++) {
		struct move_extent move = {.donor_fd = (uint32_t)donor,
								   .orig_start = (uint64_t)i * PIECE_BLOCKS,
								   .donor_start = (uint64_t)order[i] * PIECE_BLOCKS,
								   .len = PIECE_BLOCKS};
		while ((result = ioctl(fd, EXT4_IOC_MOVE_EXT, &move)) == -1 && errno == EBUSY && busy++ < BUSY_MAX) {
			forget_file(fd);
			forget_file(donor);
		}
	}
	free(order);
	return result == 0 ? fdatasync(fd) : -1;
}

static int make_scattered(struct run *run, int fd, const char *path, size_t length) {
	char donor_path[PATH_MAX + 2];
	unsigned pieces = (unsigned)(length / PIECE);
	snprintf(donor_path, sizeof donor_path, "%s.d", path);
	int donor = open(donor_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int result = donor == -1 || write_file(donor, length) == -1 ? run_stop(run, donor_path, 0) : 0;
	if (result == 0 && (scatter(fd, donor, pieces) == -1 || extents(fd) < pieces / 2))
		result = run_skip(run, "a file can be scattered on ext4 alone, and not there: --directory");
	if (donor != -1) close(donor);
	(void)unlink(donor_path);
	return result;
}

/* Drops a file from memory. Returns whether most of it was gone. */
static bool forget(int fd, size_t length) {
	unsigned asked = 0, there = 0;
	char byte;
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	/* from the end, since reading makes the kernel read ahead */
	for (size_t at = length; at > MEGABYTE; at -= MEGABYTE, asked++)
		there += preadv2(fd, &part, 1, (off_t)(at - 1), RWF_NOWAIT) == 1 || errno != EAGAIN;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return there * 2 <= asked;
}

/* Makes a file of run->count megabytes. Returns 0, or -1 after run_stop() or run_skip(). */
static int make_file(struct run *run, const char *path) {
	size_t length = ((size_t)run->count * MEGABYTE / PIECE + 1) * PIECE;
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd == -1) return run_stop(run, path, 0);
	int result = write_file(fd, length) == -1 || fchmod(fd, 0644) == -1 ? run_stop(run, path, 0) : 0;
	if (result == 0 && run_kind(run, "scattered")) result = make_scattered(run, fd, path, length);
	if (result == 0 && !run_kind(run, "memory") && !forget(fd, length))
		result = run_skip(run, "files of %s stay in memory: --directory", run->settings->directory);
	char words[16];
	snprintf(words, sizeof words, "%u", extents(fd));
	run_note(run, "extents", words);
	close(fd);
	return result;
}

/* --- the server --- */

/* Writes to path the server of the options, or the gatling that was built with this program or installed beside it. */
static void find_server(const struct run_settings *s, char *path) {
	static const char *const places[] = {"/../gatling", "/gatling"};
	if (s->server) {
		snprintf(path, PATH_MAX, "%s", s->server);
		return;
	}
	for (int i = 0; i < 2; i++) {
		ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
		path[n > 0 ? n : 0] = '\0';
		char *slash = strrchr(path, '/');
		if (slash) snprintf(slash, (size_t)(path + PATH_MAX - slash), "%s", places[i]);
		if (access(path, X_OK) == 0) return;
	}
}

/* Starts the server for a directory. Returns its port, or -1. Then text (SAID_MAX bytes) holds its messages; if *pid is
 * -1, the call that failed, with errno. */
static int start_server(const char *program, const char *directory, pid_t *pid, char *text) {
	int words[2], port = -1;
	*pid = -1;
	snprintf(text, SAID_MAX, "pipe");
	if (pipe(words) == -1) return -1;
	snprintf(text, SAID_MAX, "fork");
	*pid = fork();
	if (*pid == -1) return -1; /* the pipe is closed when the run ends */
	*text = '\0';
	if (*pid == 0) {
		run_child();
		dup2(words[1], STDERR_FILENO);
		close(words[0]);
		execl(program, "gatling", "-c", directory, "-i", "127.0.0.1", "-p", "0", "-n", "-j", "1", (char *)NULL);
		_exit(1);
	}
	close(words[1]);
	struct pollfd says = {.fd = words[0], .events = POLLIN};
	for (size_t n = 0; port == -1 && n + 1 < SAID_MAX && poll(&says, 1, WAIT_S * 1000) == 1;) {
		ssize_t got = read(words[0], text + n, SAID_MAX - n - 1);
		if (got <= 0) break;
		n += (size_t)got;
		text[n] = '\0';
		const char *at = strstr(text, "http://127.0.0.1:");
		if (at && strchr(at + strlen("http://127.0.0.1:"), '/'))
			port = (int)strtol(at + strlen("http://127.0.0.1:"), NULL, 10);
	}
	return port; /* the pipe remains open for further messages */
}

static const char *last_line(char *text) {
	size_t length = strlen(text);
	while (length && text[length - 1] == '\n') text[--length] = '\0';
	const char *before = strrchr(text, '\n');
	return !length ? "it said nothing" : before ? before + 1 : text;
}

/* --- the downloads --- */

/* Requests a file and reads the head, byte by byte, so that all content is timed. Returns the descriptor, or -1 with
 * errno. */
static int request(int port, const char *name) {
	char text[HEAD_MAX];
	struct response head = {0};
	const union net_address to = {
		.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	struct timeval limit = {.tv_sec = WAIT_S};
	const int fd = net_connect(&to, sizeof to.v4);
	int n = 0;
	if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == -1) return -1;
	int length = snprintf(text, sizeof text, "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", name);
	if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length) return -1;
	while (!head.status && n < HEAD_MAX && recv(fd, text + n, 1, 0) == 1)
		if (response_head(&head, text, (size_t)++n, false) == -1) break;
	if (head.status == 200) return fd;
	errno = EPROTO;
	return -1;
}

/* Reads run->count megabytes. keep: keeps the rate of each. Returns 0, or -1 with errno. */
static int download(struct run *run, int fd, bool keep) {
	static char block[BLOCK];
	int64_t start = machine_clock_ns(), before = start;
	double cpu_s = machine_seconds(CLOCK_THREAD_CPUTIME_ID);
	size_t have = 0;
	for (unsigned n = 0; n < run->count;) {
		size_t rest = MEGABYTE - have < BLOCK ? MEGABYTE - have : BLOCK;
		ssize_t got = recv(fd, block, rest, 0);
		if (got <= 0) {
			errno = got == 0 ? ECONNRESET : errno == EAGAIN ? ETIMEDOUT : errno;
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
	cpu_s = machine_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu_s;
	if (keep) run_client(run, (unsigned)(100 * cpu_s / ((double)(before - start) / 1e9)));
	return 0;
}

/* Starts a process that downloads the other file again and again. Returns its ID, or -1. */
static pid_t start_competitor(struct run *run, int port) {
	pid_t pid = fork();
	if (pid) return pid;
	run_child();
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
	char path[PATH_MAX], program[PATH_MAX], said[SAID_MAX];
	pid_t server = -1;
	find_server(run->settings, program);
	if (access(program, X_OK) == -1) return run_skip(run, "%s is not there: --server PATH", program);
	for (unsigned i = 0; i < run->settings->streams && i < FILES; i++) {
		snprintf(path, sizeof path, "%s/%u", directory, i);
		if (make_file(run, path) == -1) return -1;
	}
	int port = start_server(program, directory, &server, said);
	if (server == -1) return run_stop(run, said, 0);
	int result =
		port == -1 ? run_fail(run, "%s does not serve: %s", program, last_line(said)) : measure_from(run, port);
	kill(server, SIGTERM);
	waitpid(server, NULL, 0);
	return result;
}

static int measure(struct run *run) {
	const char *directory = run_directory(run);
	if (!directory) return -1;
	return chmod(directory, 0755) == -1 ? run_stop(run, directory, 0) : measure_in(run, directory);
}

const struct benchmark benchmark_download = {
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
	.options = KBENCH_OPTION_DIRECTORY | KBENCH_OPTION_STREAMS | KBENCH_OPTION_SERVER,
	.streams_max = FILES,
	.network = true,
	.measure = measure,
};
