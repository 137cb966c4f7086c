/* iperf3.c - see iperf3.h. */
#include "bench/kbench/iperf3.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_LENGTH_MAX = 256, INTERVAL_MS = 100, PARTS = 10 };

bool iperf3_found(void) { return system("command -v iperf3 >/dev/null") == 0; }

/* Returns the bytes that a line "[ID] FROM-TO sec N MBytes K Kbits/sec" reports, or 0 for other lines. With several
 * streams, only the line with their sum counts. */
static uint64_t bytes_of(const struct net *net, const char *line) {
	const char *id = strchr(line, '['), *rate = strstr(line, "Bytes");
	char *dash, *end;
	if (!id || !rate || !strchr(id, ']')) return 0;
	if (net->settings->streams > 1 && strncmp(id, "[SUM]", 5) != 0) return 0;
	const double from = strtod(strchr(id, ']') + 1, &dash), to = *dash == '-' ? strtod(dash + 1, NULL) : from;
	const double kilobits = strtod(rate + strlen("Bytes"), &end);
	if (strncmp(end, " Kbits/sec", strlen(" Kbits/sec")) != 0) return 0;
	return (uint64_t)(kilobits * 1000 / 8 * (to - from));
}

/* Starts iperf3, which ends with this process, and writes to out. Returns false if it cannot be started, and sets
 * process. */
static bool start(char *const *words, int out, _Atomic pid_t *process) {
	const pid_t child = fork();
	if (child > 0) atomic_store(process, child);
	if (child != 0) return child != -1;
	run_child();
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	execvp("iperf3", words);
	_exit(127);
}

/* Spreads the bytes of an interval over the next one; otherwise some steps would get those of two intervals, and others
 * none. */
static void count(struct net *net, uint64_t bytes) {
	const struct timespec pause_time = {.tv_nsec = INTERVAL_MS * 1000000 / PARTS};
	for (int i = 0; i < PARTS && bytes; i++) {
		atomic_fetch_add(&net->counters->received, bytes / PARTS);
		if (i + 1 < PARTS) nanosleep(&pause_time, NULL);
	}
}

static void *listen_to(void *argument) {
	struct net *net = argument;
	char line[LINE_LENGTH_MAX], port[8];
	char *const words[] = {"iperf3", "-s", "-p", port, "-i", "0.1", "-f", "k", "--forceflush", NULL};
	int output[2];
	snprintf(port, sizeof port, "%d", NET_PORT);
	if (pipe2(output, O_CLOEXEC) == -1 || !start(words, output[1], &net->counters->receiver)) return NULL;
	close(output[1]);
	FILE *in = fdopen(output[0], "r");
	while (in && fgets(line, sizeof line, in)) {
		if (strstr(line, "listening")) atomic_fetch_add(&net->counters->ready, 1);
		count(net, bytes_of(net, line));
	}
	return NULL;
}

void iperf3_receiver(struct net *net) {
	pthread_t thread;
	if (pthread_create(&thread, NULL, listen_to, net) == 0) pthread_detach(thread);
}

void iperf3_send(struct net *net, unsigned number) {
	char to[INET6_ADDRSTRLEN], port[8], seconds[8], streams[8];
	char *const words[] = {"iperf3", "-c", to, "-p", port, "-t", seconds, "-P", streams, NULL};
	const bool six = net->receiver.any.sa_family == AF_INET6;
	if (number > 0) return; /* one process sends all streams */
	inet_ntop(net->receiver.any.sa_family, six ? (void *)&net->receiver.v6.sin6_addr : &net->receiver.v4.sin_addr, to,
			  sizeof to);
	snprintf(port, sizeof port, "%d", NET_PORT);
	snprintf(seconds, sizeof seconds, "%d", RUN_S);
	snprintf(streams, sizeof streams, "%u", net->settings->streams);
	const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (nowhere == -1 || !start(words, nowhere, &net->counters->sender))
		return;           /* nothing is received then, which is reported */
	while (true) pause(); /* the child would end with this thread */
}
