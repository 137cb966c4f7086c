/* counters.h - the kernel's counters of lost packets and connections in this network namespace, and the processor time
 * that other guests of the host took. They tell whether a run was disturbed. All are 0 on systems other than Linux. */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTERS = 11 };

struct counters {
	uint64_t value[COUNTERS];
	uint64_t ticks, stolen; /* of all processors; stolen: by other guests of the host */
};

/* As /proc/net/netstat, /proc/net/snmp and "softnet_dropped" call them. */
extern const char *const counters_name[COUNTERS];

/* Reads the ticks of all processors together since the system started, in the order of proc_stat(5). */
enum { COUNTERS_TICKS_IDLE = 3, COUNTERS_TICKS_IOWAIT = 4, COUNTERS_TICKS_STOLEN = 7, COUNTERS_TICKS = 8 };
void counters_ticks(uint64_t tick[COUNTERS_TICKS]);

void counters_read(struct counters *counters);

/* Returns now minus before. */
struct counters counters_since(const struct counters *now, const struct counters *before);

/* Whether other guests took more of the processors' time than COUNTERS_STOLEN_PER_MILLE; whether a counter has moved.
 * If so, text (size bytes) says which and how much; else it is unchanged. */
enum { COUNTERS_STOLEN_PER_MILLE = 10 };
bool counters_stolen(const struct counters *counters, char *text, size_t size);
bool counters_moved(const struct counters *counters, char *text, size_t size);

#endif
