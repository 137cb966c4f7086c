/* hold.c - opens many connections to a server and keeps them: a request on each when it is opened, and one more on each
 * when all are open. Prints how many were answered and, given the server's process, what an idle connection costs it in
 * memory.
 *
 *     hold [-n CONNECTIONS] [-p PID] PORT PATH
 *
 * To 127.0.0.1, from one process and one source address for every 10,000 connections: fewer than the descriptors of a
 * process, and fewer than the ports that a source address has before the kernel's search for a free one gets slow. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/machine.h"
#include "bench/usage.h"
#include "io/io.h"

enum { PER_PROCESS = 10000, PROCESSES_MAX = 100, ANSWER_MAX = 64 * 1024, TIMEOUT_S = 30 };

static struct sockaddr_in server = {.sin_family = AF_INET};
static char request[4096];

/* Resident bytes of a process, 0 if it cannot be known. */
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

static int open_connection(in_addr_t source) {
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = source};
	struct timeval timeout = {.tv_sec = TIMEOUT_S};
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd == -1) return -1;
	/* the port is chosen when the destination is known */
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
		bind(fd, (struct sockaddr *)&from, sizeof from) == 0 &&
		connect(fd, (struct sockaddr *)&server, sizeof server) == 0)
		return fd;
	close(fd);
	return -1;
}

/* One request, and its answer up to the last byte. */
static int ask(int fd) {
	static char answer[ANSWER_MAX];
	size_t have = 0;
	if (write(fd, request, strlen(request)) != (ssize_t)strlen(request)) return -1;
	while (have < sizeof answer - 1) {
		ssize_t n = read(fd, answer + have, sizeof answer - 1 - have);
		if (n == 0) errno = ECONNRESET;
		if (n <= 0) return -1;
		have += (size_t)n;
		answer[have] = '\0';
		const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "\r\nContent-Length: ");
		if (!body || !length) continue;
		if (have < (size_t)(body + 4 - answer) + strtoul(length + strlen("\r\nContent-Length: "), NULL, 10)) continue;
		if (strncmp(answer, "HTTP/1.1 200 ", strlen("HTTP/1.1 200 ")) == 0) return 0;
		break;
	}
	errno = EPROTO; /* not a 200, or a longer answer than there is room for */
	return -1;
}

/* A process: opens its share and says how many were answered; at a word from the parent asks on each again and says
 * so; ends at another, or when the parent has gone. */
__attribute__((noreturn)) static void hold(int number, long share, int parent) {
	int *fd = calloc((size_t)share, sizeof *fd);
	long opened = 0, answered = 0;
	char word;
	for (; fd && opened < share; opened++) {
		fd[opened] = open_connection(htonl(INADDR_LOOPBACK + 1 + (in_addr_t)number));
		if (fd[opened] == -1 || ask(fd[opened]) == -1) {
			fprintf(stderr, "hold: connection %ld from 127.0.0.%d: %s\n", opened + 1, number + 2, strerror(errno));
			break;
		}
	}
	if (write(parent, &opened, sizeof opened) != sizeof opened || read(parent, &word, 1) != 1) exit(1);
	for (long i = 0; i < opened; i++) answered += ask(fd[i]) == 0;
	if (write(parent, &answered, sizeof answered) != sizeof answered || read(parent, &word, 1) != 1) exit(1);
	exit(0);
}

/* Starts a process for a share; our end of the socket to it, or -1. */
static int start(int number, long share) {
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == -1) return -1;
	pid_t child = fork();
	if (child == 0) {
		close(pair[0]);
		hold(number, share, pair[1]);
	}
	close(pair[1]);
	if (child != -1) return pair[0];
	close(pair[0]);
	return -1;
}

/* Adds up what the processes say; one that has died says nothing. */
static long collect(const int *process, int processes) {
	long sum = 0;
	for (int i = 0; i < processes; i++) {
		long n;
		if (read(process[i], &n, sizeof n) == sizeof n) sum += n;
	}
	return sum;
}

static void tell(const int *process, int processes) {
	for (int i = 0; i < processes; i++) (void)!send(process[i], "", 1, MSG_NOSIGNAL); /* it may have died */
}

static double seconds(void) { return (double)machine_clock_ns() / 1e9; }

static const char help[] = "usage: hold [-n CONNECTIONS] [-p PID] PORT PATH";

int main(int argc, char **argv) {
	static int process[PROCESSES_MAX];
	long connections = 1000, pid = 0;
	usage_program = "hold";
	opterr = 0;
	static const struct option long_options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	for (int c; (c = getopt_long(argc, argv, "n:p:h", long_options, NULL)) != -1;) {
		if (c == 'n') connections = usage_whole_number("-n", optarg, 1, (double)PER_PROCESS * PROCESSES_MAX);
		else if (c == 'p') pid = usage_whole_number("-p", optarg, 1, INT_MAX);
		else if (c == 'h') return puts(help) == EOF;
		else refuse("unknown option, or one without its value: '%s'", argv[optind - 1]);
	}
	if (argc - optind != 2) refuse("a port and a path are needed");
	long port = usage_whole_number("PORT", argv[optind], 1, 65535);
	const char *path = argv[optind + 1];
	server.sin_port = htons((in_port_t)port);
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
	if (length >= (int)sizeof request) refuse("the path is too long");
	(void)io_raise_descriptor_limit();

	int warm = open_connection(htonl(INADDR_LOOPBACK)); /* what the first request costs is not a connection's */
	if (warm == -1 || ask(warm) == -1) {
		fprintf(stderr, "hold: no answer from port %ld for %s\n", port, path);
		return 1;
	}
	int processes = 0;
	long before = resident(pid);
	double start_s = seconds();
	for (long left = connections; left > 0; left -= PER_PROCESS) {
		process[processes] = start(processes, left < PER_PROCESS ? left : PER_PROCESS);
		if (process[processes++] != -1) continue;
		perror("hold: cannot start a process");
		break;
	}
	long opened = collect(process, processes);
	long grown = resident(pid) - before;
	double opened_s = seconds() - start_s;
	tell(process, processes);
	long answered = collect(process, processes);
	double answered_s = seconds() - start_s - opened_s;
	tell(process, processes);
	while (wait(NULL) > 0) {}

	printf("# asked\topen\tanswered_again\tseconds_to_open\tseconds_to_ask_again\trss_bytes_each\n");
	printf("%ld\t%ld\t%ld\t%.3f\t%.3f\t", connections, opened, answered, opened_s, answered_s);
	if (pid && opened) printf("%.1f\n", (double)grown / (double)opened);
	else printf("-\n");
	return opened == connections && answered == connections ? 0 : 3;
}
