/* machine.c - see machine.h. */
#include "bench/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/usage.h"
#include "io/io.h"
#include "io/version.h"

enum { LINE_MAX_LENGTH = 1024, CLOCK_READINGS = 1000, DESCRIPTORS_RESERVED = 16 /* for other uses */ };

static const char *const settings[] = {
	"net/ipv4/ip_local_port_range",
	"net/ipv4/tcp_max_syn_backlog",
	"net/ipv4/tcp_tw_reuse",
	"net/ipv4/tcp_max_tw_buckets",
	"net/ipv4/tcp_congestion_control",
	"net/core/somaxconn",
	"net/core/netdev_max_backlog",
	"fs/file-max",
	"fs/nr_open",
};

int64_t machine_clock_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double machine_seconds(clockid_t clock) {
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

unsigned machine_connections(unsigned most) {
	uint64_t descriptors = io_raise_descriptor_limit();
	if (descriptors >= (uint64_t)most + DESCRIPTORS_RESERVED) return most;
	if (descriptors <= DESCRIPTORS_RESERVED)
		usage_refuse("the limit of %u descriptors is too low, which ulimit -n sets", (unsigned)descriptors);
	return (unsigned)descriptors - DESCRIPTORS_RESERVED;
}

/* Prints the rest of the first line in the file that begins with start. */
static void print_line(FILE *out, const char *key, const char *path, const char *start) {
	char line[LINE_MAX_LENGTH];
	FILE *in = fopen(path, "r");
	while (in && fgets(line, sizeof line, in)) {
		if (strncmp(line, start, strlen(start)) != 0) continue;
		char *value = line + strlen(start);
		value += strspn(value, " \t:");
		value[strcspn(value, "\n")] = '\0';
		fprintf(out, "# %s\t%s\n", key, value);
		break;
	}
	if (in) fclose(in);
}

/* Returns the shortest time between two readings of the clock. */
static int64_t clock_cost_ns(void) {
	int64_t least = INT64_MAX;
	for (int i = 0; i < CLOCK_READINGS; i++) {
		int64_t before = machine_clock_ns(), passed = machine_clock_ns() - before;
		if (passed < least) least = passed;
	}
	return least;
}

void machine_describe(FILE *out, int argc, char **argv) {
	char date[64], path[256];
	time_t now = time(NULL);
	struct tm tm;
	struct utsname system;
	struct timespec resolution;
	struct rlimit limit = {0};
	fprintf(out, "# program\t%s %s\n# command\t", usage_program, GATLING_VERSION);
	for (int i = 0; i < argc; i++) fprintf(out, "%s%s", i ? " " : "", argv[i]);
	gmtime_r(&now, &tm);
	strftime(date, sizeof date, "%FT%TZ", &tm);
	fprintf(out, "\n# date\t%s\n", date);
	if (uname(&system) == 0) fprintf(out, "# kernel\t%s %s %s\n", system.sysname, system.release, system.version);
	print_line(out, "cpu", "/proc/cpuinfo", "model name");
	fprintf(out, "# cpus\t%ld\n# mechanism\t%s\n", sysconf(_SC_NPROCESSORS_ONLN), io_mechanism());
	print_line(out, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "");
	print_line(out, "frequency_khz", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "");
	print_line(out, "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", "");
	clock_getres(CLOCK_MONOTONIC, &resolution);
	fprintf(out, "# clock_ns\tresolution %ld, a reading costs %lld\n", resolution.tv_nsec, (long long)clock_cost_ns());
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		fprintf(out, "# descriptors\t%llu of %llu\n", (unsigned long long)limit.rlim_cur,
				(unsigned long long)limit.rlim_max);
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		snprintf(path, sizeof path, "/proc/sys/%s", settings[i]);
		print_line(out, settings[i], path, "");
	}
}

int64_t machine_queued_ns(void) {
	char line[128], *second;
	FILE *in = fopen("/proc/thread-self/schedstat", "r"); /* on Linux: time run, time waited, and how often it ran */
	const bool known = in && fgets(line, sizeof line, in);
	if (in) fclose(in);
	return known && (second = strchr(line, ' ')) ? strtoll(second, NULL, 10) : 0;
}
