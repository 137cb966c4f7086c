/* hold.c - opens many connections to a server and keeps them. It sends a request on each when it has opened it, and
 * another one on each when all are open. It prints how many were answered, and if it knows the server's process, how
 * much memory an idle connection takes there.
 *
 *     hold [-n CONNECTIONS] [-p PID] PORT PATH
 *
 * It connects to 127.0.0.1. There is a process and a source address for every 10,000 connections: fewer than the
 * descriptors of a process, and fewer than the ports of an address before the kernel's search for a free one gets slow.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/connbench/ask.h"
#include "bench/machine.h"
#include "bench/usage.h"

#define SOURCES "127.0.0.0/24"
enum { PER_PROCESS = 10000, PROCESSES_MAX = 100, URL_MAX = 4096, ERROR_MAX = 512 };

static struct target target;
static struct sources sources; /* one for each process, and one for the first request */
static io_loop *loop;          /* the loop of this process */

/* The connections of a process. */
struct share {
	unsigned number;
	long connections;
};

/* Returns the resident bytes of a process, or 0 if they are not known. */
static long resident(long pid) {
	char path[64];
	long pages = 0;
	snprintf(path, sizeof path, "/proc/%ld/statm", pid);
	FILE *f = pid ? fopen(path, "r") : NULL;
	if (!f) return 0;
	if (fscanf(f, "%*s %ld", &pages) != 1) pages = 0; // NOLINT(cert-err34-c): the kernel wrote it
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Opens a connection from the address with that number, and waits for the response to a request on it. Returns the
 * descriptor, or -1. */
static int open_connection(unsigned source, struct ask_stop *stop) {
	int64_t ignored_ns;
	struct ask_times ignored;
	int fd = ask_connect(loop, &target, &sources, source, 0, &ignored_ns, stop);
	if (fd == -1 || ask(loop, fd, &target, 0, &ignored, stop) == 0) return fd;
	io_close(loop, fd);
	return -1;
}

/* Sends a request on each connection. Returns how many were answered. Prints why the first one failed, if it did. After
 * a timeout it tries no further ones. */
static long ask_again(const int *fd, long opened, unsigned number) {
	struct ask_times ignored;
	long answered = 0;
	for (long i = 0; i < opened; i++) {
		struct ask_stop stop = {0};
		const bool failed = ask(loop, fd[i], &target, 0, &ignored, &stop) == -1;
		if (failed && answered == i)
			fprintf(stderr, "hold: connection %ld of process %u, asked again: %s: %s\n", i + 1, number, stop.call,
					ask_why(&stop));
		if (failed && stop.error == ETIMEDOUT) break;
		answered += !failed;
	}
	return answered;
}

/* Runs a child process. It opens its share of the connections and reports how many were answered. When the parent sends
 * a byte, it sends another request on each and reports how many were answered. It ends at the next byte, or when the
 * parent ends. */
__attribute__((noreturn)) static void hold(int parent, const void *argument) {
	const struct share *own = argument;
	unsigned number = own->number;
	long share = own->connections;
	int *fd = calloc((size_t)share, sizeof *fd);
	long opened = 0, answered;
	char word;
	struct ask_stop stop;
	io_loop_free(loop); /* it is the parent's */
	loop = io_loop_new();
	if (!fd || !loop) fprintf(stderr, "hold: %s\n", strerror(errno));
	for (; fd && loop && opened < share; opened++) {
		fd[opened] = open_connection(number, &stop);
		if (fd[opened] != -1) continue;
		fprintf(stderr, "hold: connection %ld of process %u: %s: %s\n", opened + 1, number, stop.call, ask_why(&stop));
		break;
	}
	if (write(parent, &opened, sizeof opened) != sizeof opened || read(parent, &word, 1) != 1) exit(1);
	answered = ask_again(fd, opened, number);
	if (write(parent, &answered, sizeof answered) != sizeof answered || read(parent, &word, 1) != 1) exit(1);
	exit(0);
}

/* Returns the sum of what the processes report. */
static long collect(const int *process, unsigned processes) {
	long sum = 0;
	for (unsigned i = 0; i < processes; i++) {
		long n;
		if (read(process[i], &n, sizeof n) == sizeof n) sum += n;
	}
	return sum;
}

static void tell(const int *process, unsigned processes) {
	for (unsigned i = 0; i < processes; i++) (void)!send(process[i], "", 1, MSG_NOSIGNAL); /* it may have died */
}

static const char help[] = "usage: hold [-n CONNECTIONS] [-p PID] [--source NET] PORT PATH\n";

int main(int argc, char **argv) {
	static int process[PROCESSES_MAX];
	long connections = 1000, pid = 0;
	const char *net = SOURCES;
	usage_program = "hold";
	opterr = 0;
	static const struct option long_options[] = {
		{"help", no_argument, NULL, 'h'}, {"source", required_argument, NULL, 's'}, {0}};
	for (int c; (c = getopt_long(argc, argv, ":n:p:h", long_options, NULL)) != -1;) {
		if (c == 'n') connections = (long)usage_whole_number("-n", optarg, 1, (double)PER_PROCESS * PROCESSES_MAX);
		else if (c == 'p') pid = (long)usage_whole_number("-p", optarg, 1, INT_MAX);
		else if (c == 's') net = optarg;
		else if (c == 'h') usage_help(help);
		else usage_bad_option(c, argv);
	}
	if (argc - optind != 2) usage_refuse("a port and a path are needed");
	long port = (long)usage_whole_number("PORT", argv[optind], 1, 65535);
	const char *path = argv[optind + 1];
	if (*path != '/') usage_refuse("PATH begins with /, unlike '%s'", path);
	char url[URL_MAX], error[ERROR_MAX];
	if (snprintf(url, sizeof url, "http://127.0.0.1:%ld%s", port, path) >= (int)sizeof url)
		usage_refuse("the path is too long");
	const struct target_options request = {.method = "GET"};
	if (target_make(&target, url, &request, NULL, error, sizeof error) == -1) usage_refuse("%s", error);
	if (sources_parse(&sources, net) == -1) usage_refuse("--source takes ADDRESS or ADDRESS/BITS, not '%s'", net);
	sources_require(&sources, target.address.ss_family, url);
	(void)io_raise_descriptor_limit();
	signal(SIGPIPE, SIG_IGN);
	loop = io_loop_new();
	if (!loop) usage_refuse("cannot wait for events: %s", strerror(errno));

	struct ask_stop stop;
	int warm = open_connection(PROCESSES_MAX, &stop); /* so that the cost of a first request does not count */
	if (warm == -1) {
		fprintf(stderr, "hold: no answer from %s: %s: %s\n", url, stop.call, ask_why(&stop));
		return 1;
	}
	unsigned processes = 0;
	long before = resident(pid);
	if (pid && !before) usage_refuse("-p: there is no process %ld, or its memory cannot be known", pid);
	double start_s = machine_seconds(CLOCK_MONOTONIC);
	for (long left = connections; left > 0; left -= PER_PROCESS) {
		const struct share share = {.number = processes, .connections = left < PER_PROCESS ? left : PER_PROCESS};
		process[processes] = ask_fork(hold, &share);
		if (process[processes++] != -1) continue;
		perror("hold: cannot start a process");
		break;
	}
	long opened = collect(process, processes);
	long after = resident(pid);
	double opened_s = machine_seconds(CLOCK_MONOTONIC) - start_s;
	tell(process, processes);
	long answered = collect(process, processes);
	double answered_s = machine_seconds(CLOCK_MONOTONIC) - start_s - opened_s;
	tell(process, processes);
	while (wait(NULL) > 0) {}

	printf("# asked\topen\tanswered_again\tseconds_to_open\tseconds_to_ask_again\trss_bytes_each\n");
	printf("%ld\t%ld\t%ld\t%.3f\t%.3f\t", connections, opened, answered, opened_s, answered_s);
	if (after && opened) printf("%.1f\n", (double)(after - before) / (double)opened);
	else printf("-\n");
	return usage_end(opened == connections && answered == connections ? 0 : 3);
}
