/* elsewhere.c - for systems other than Linux: stands in for network namespaces, and for files whose place in memory and
 * on the disk is known. Benchmarks that need these are skipped; the others run without them. */
#include <errno.h>
#include <limits.h>

#include "bench/kbench/kbench.h"
#include "bench/kbench/link.h"

bool namespace_enter(void) { return false; }

unsigned namespace_read_numbers(const char *path, unsigned *number, unsigned most) {
	(void)path, (void)number, (void)most;
	return 0;
}

int namespace_set_ports(unsigned first, unsigned last) {
	(void)first, (void)last;
	errno = ENOTSUP;
	return -1;
}

int namespace_ports(unsigned *first, unsigned *last) {
	(void)first, (void)last;
	errno = ENOTSUP;
	return -1;
}

static int skip(struct run *run) {
	return run_skip(run, "takes network namespaces, or files, as Linux alone has them");
}

const struct link_kind *link_kind_of(const char *name) { return (const struct link_kind *)name; }
const char *link_name(const struct link_kind *kind) { return (const char *)kind; }
const char *link_names(void) { return "(on Linux alone)"; }

/* They accept all options of the same benchmarks on Linux. */
#define ELSEWHERE                                                                                                      \
	.how = "On Linux alone.", .n = "steps", .columns = {"received_mbit_s"}, .count = 30, .options = UINT_MAX,          \
	.streams_max = UINT_MAX, .measure = skip

const struct benchmark benchmark_download = {
	.name = "download", .summary = "a large file of a server", .kinds = {"memory", "disk", "scattered"}, ELSEWHERE};
const struct benchmark benchmark_stream = {.name = "stream",
										   .summary = "what gets through from one network namespace to another",
										   .kinds = {"tcp", "udp", "multicast", "iperf3"},
										   ELSEWHERE};
const struct benchmark benchmark_relay = {.name = "relay",
										  .summary = "what gets through a process between two connections",
										  .kinds = {"copy", "splice"},
										  ELSEWHERE};
const struct benchmark benchmark_forward = {.name = "forward",
											.summary = "what gets through a network namespace that forwards",
											.kinds = {"tcp", "udp"},
											ELSEWHERE};
