/* counters.c - see counters.h. */
#include "bench/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_LENGTH_MAX = 16384 };

const char *const counters_name[COUNTERS] = {
	"ListenOverflows",      /* the accept queue was full: connections were dropped */
	"ListenDrops",          /* the same, or another reason */
	"TCPReqQFullDrop",      /* the SYN queue was full */
	"TCPReqQFullDoCookies", /* the same, but SYN cookies were sent */
	"TCPBacklogDrop",       /* segments for a socket that was busy for too long, dropped */
	"TCPRcvQDrop",          /* segments for which a socket had no room, dropped */
	"TCPTimeWaitOverflow",  /* tcp_max_tw_buckets: connections that did not get a TIME_WAIT */
	"TCPAbortOnMemory",     /* connections that the kernel ended because it lacked memory */
	"TCPSynRetrans",        /* each delayed a connection by a second or more */
	"RetransSegs",          /* retransmitted segments */
	"softnet_dropped",      /* netdev_max_backlog: packets dropped between the ends of the loopback */
};

static void set(struct counters *c, const char *name, uint64_t value) {
	for (int i = 0; i < COUNTERS; i++)
		if (strcmp(counters_name[i], name) == 0) c->value[i] = value;
}

/* Reads pairs of lines, "Prefix: names" and "Prefix: values". */
static void read_pairs(struct counters *c, const char *path) {
	static char names[LINE_LENGTH_MAX], values[LINE_LENGTH_MAX];
	FILE *in = fopen(path, "r");
	while (in && fgets(names, sizeof names, in) && fgets(values, sizeof values, in)) {
		char *name_at, *value_at;
		char *name = strtok_r(names, " \n", &name_at), *value = strtok_r(values, " \n", &value_at);
		for (; name && value; name = strtok_r(NULL, " \n", &name_at), value = strtok_r(NULL, " \n", &value_at))
			set(c, name, strtoull(value, NULL, 10));
	}
	if (in) fclose(in);
}

/* Adds up the second number of each line, in hexadecimal: the packets that a processor dropped. */
static void read_softnet(struct counters *c) {
	char line[512];
	uint64_t dropped = 0;
	FILE *in = fopen("/proc/net/softnet_stat", "r");
	while (in && fgets(line, sizeof line, in)) {
		const char *second = strchr(line, ' ');
		if (second) dropped += strtoull(second, NULL, 16);
	}
	if (in) fclose(in);
	set(c, "softnet_dropped", dropped);
}

void counters_ticks(uint64_t tick[COUNTERS_TICKS]) {
	char line[512];
	FILE *in = fopen("/proc/stat", "r");
	char *at = in && fgets(line, sizeof line, in) ? line + strcspn(line, " ") : NULL;
	for (int i = 0; i < COUNTERS_TICKS; i++) tick[i] = at ? strtoull(at, &at, 10) : 0;
	if (in) fclose(in);
}

/* Adds up how often each core was throttled, where the kernel shows it. */
static uint64_t read_throttled(void) {
	uint64_t sum = 0;
	for (int i = 0;; i++) {
		char path[96], line[32];
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", i);
		FILE *in = fopen(path, "r");
		if (!in) return sum;
		if (fgets(line, sizeof line, in)) sum += strtoull(line, NULL, 10);
		fclose(in);
	}
}

void counters_read(struct counters *c) {
	*c = (struct counters){0};
	read_pairs(c, "/proc/net/netstat");
	read_pairs(c, "/proc/net/snmp");
	read_softnet(c);
	uint64_t tick[COUNTERS_TICKS];
	counters_ticks(tick);
	for (int i = 0; i < COUNTERS_TICKS; i++) c->ticks += tick[i];
	c->stolen = tick[COUNTERS_TICKS_STOLEN];
	c->throttled = read_throttled();
}

struct counters counters_since(const struct counters *now, const struct counters *before) {
	struct counters since = {.ticks = now->ticks - before->ticks,
							 .stolen = now->stolen - before->stolen,
							 .throttled = now->throttled - before->throttled};
	for (int i = 0; i < COUNTERS; i++) since.value[i] = now->value[i] - before->value[i];
	return since;
}

bool counters_stolen(const struct counters *c, char *text, size_t size) {
	if (c->throttled)
		snprintf(text, size, "a processor got too hot, and slower, %llu times", (unsigned long long)c->throttled);
	if (c->throttled) return true;
	if (c->stolen * 100 <= c->ticks * COUNTERS_STOLEN_PERCENT) return false;
	snprintf(text, size, "others on the host took %.1f %% of the processors",
			 100 * (double)c->stolen / (double)c->ticks);
	return true;
}

bool counters_moved(const struct counters *c, char *text, size_t size) {
	size_t n = 0;
	for (int i = 0; i < COUNTERS && n < size; i++)
		if (c->value[i])
			n += (size_t)snprintf(text + n, size - n, "%s%s +%llu", n ? ", " : "", counters_name[i],
								  (unsigned long long)c->value[i]);
	return n > 0;
}
