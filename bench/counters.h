/* counters.h - the kernel's counters of lost packets and connections in this network namespace, and the processor time
 * that other guests of the host took. They show whether a run was disturbed. On systems other than Linux all are 0. */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTERS = 11 };

struct counters {
	uint64_t value[COUNTERS];
	uint64_t ticks, stolen; /* of all processors; stolen: by other guests of the host */
	uint64_t throttled;     /* how often a processor became slower since it was too hot */
};

/* The names in /proc/net/netstat and /proc/net/snmp, and "softnet_dropped". */
extern const char *const counters_name[COUNTERS];

/* Reads the ticks of all processors, added up, since the system started, in the order of proc_stat(5). */
enum { COUNTERS_TICKS_IDLE = 3, COUNTERS_TICKS_IOWAIT = 4, COUNTERS_TICKS_STOLEN = 7, COUNTERS_TICKS = 8 };
void counters_ticks(uint64_t tick[COUNTERS_TICKS]);

void counters_read(struct counters *counters);

/* Returns the differences between now and before. */
struct counters counters_since(const struct counters *now, const struct counters *before);

/* counters_stolen() returns whether other guests took more than COUNTERS_STOLEN_PERCENT of the processors' time, or
 * heat made one slower; counters_moved() whether a counter has changed. If so, they describe it in text (size bytes);
 * otherwise they leave text alone. */
enum { COUNTERS_STOLEN_PERCENT = 2 };
bool counters_stolen(const struct counters *counters, char *text, size_t size);
bool counters_moved(const struct counters *counters, char *text, size_t size);

#endif
