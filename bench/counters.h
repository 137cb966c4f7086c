/* counters.h - what the kernel counts of packets and connections that went wrong, in this network namespace, and the
 * processor time that others took: they tell whether a run shows the server or its surroundings. All 0 where the system
 * does not say (it is Linux that does). */
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

/* Ticks of all processors together since the start, in the order of proc_stat(5); all 0 where the system does not say.
 */
enum { COUNTERS_TICKS_IDLE = 3, COUNTERS_TICKS_IOWAIT = 4, COUNTERS_TICKS_STOLEN = 7, COUNTERS_TICKS = 8 };
void counters_ticks(uint64_t tick[COUNTERS_TICKS]);

void counters_read(struct counters *counters);

/* What has been added since. */
struct counters counters_since(const struct counters *now, const struct counters *before);

/* Whether others took more of the processors' time than COUNTERS_STOLEN_PER_MILLE; whether a counter of the kernel
 * moved. Then text, of size bytes, says so; else it is left as it is. */
enum { COUNTERS_STOLEN_PER_MILLE = 10 };
bool counters_stolen(const struct counters *counters, char *text, size_t size);
bool counters_moved(const struct counters *counters, char *text, size_t size);

#endif
