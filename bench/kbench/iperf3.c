/* iperf3.c - see iperf3.h. All iperf3 processes end with the run, whose process group is killed. */
#include "bench/kbench/iperf3.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_LENGTH_MAX = 256, LINE_LENGTH_MAX = 256 };

bool iperf3_found(void) { return system("command -v iperf3 >/dev/null") == 0; }

/* Returns the bytes of a line "[ID] FROM-TO sec N MBytes K Kbits/sec"; 0: it is another. Of several streams their sum
 * counts. */
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

static void *listen_to(void *argument) {
	struct net *net = argument;
	char command[COMMAND_LENGTH_MAX], line[LINE_LENGTH_MAX];
	snprintf(command, sizeof command, "exec iperf3 -s -p %d -i 0.1 -f k --forceflush 2>/dev/null", NET_PORT);
	FILE *in = popen(command, "r");
	while (in && fgets(line, sizeof line, in)) {
		if (strstr(line, "listening")) atomic_fetch_add(&net->counters->ready, 1);
		atomic_fetch_add(&net->counters->received, bytes_of(net, line));
	}
	return NULL;
}

void iperf3_receiver(struct net *net) {
	pthread_t thread;
	if (pthread_create(&thread, NULL, listen_to, net) == 0) pthread_detach(thread);
}

void iperf3_send(struct net *net, unsigned number) {
	char command[COMMAND_LENGTH_MAX], to[INET6_ADDRSTRLEN];
	const bool six = net->receiver.any.sa_family == AF_INET6;
	if (number > 0) return; /* it sends all of the streams */
	inet_ntop(net->receiver.any.sa_family, six ? (void *)&net->receiver.v6.sin6_addr : &net->receiver.v4.sin_addr, to,
			  sizeof to);
	snprintf(command, sizeof command, "exec iperf3 -c %s -p %d -t %d -P %u >/dev/null 2>&1", to, NET_PORT, RUN_S,
			 net->settings->streams);
	if (system(command) == -1) return; /* then nothing is received, which is said */
}
