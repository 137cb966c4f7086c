/* view.c - see view.h. */
#include "gatling/status/view.h"

#include "gatling/status/values.h"

const struct figure_name figure_name[FIGURES] = {
	[FIGURE_REQUESTS] = {"requests", "requests", "/s", 1},
	[FIGURE_SENT] = {"sent_bytes", "sent", "MB/s", 1e-6},
	[FIGURE_CONNECTIONS] = {"connections", "connections", "", 1},
	[FIGURE_FIRST_50] = {"first_byte_p50_seconds", "first byte, median", "ms", 1e3},
	[FIGURE_FIRST_99] = {"first_byte_p99_seconds", "first byte, 99 %", "ms", 1e3},
	[FIGURE_DURATION_50] = {"duration_p50_seconds", "whole answer, median", "ms", 1e3},
	[FIGURE_DURATION_99] = {"duration_p99_seconds", "whole answer, 99 %", "ms", 1e3},
	[FIGURE_ERRORS] = {"server_errors", "answers of 5xx", "/s", 1},
	[FIGURE_REFUSED] = {"refused", "refused", "/s", 1},
	[FIGURE_QUEUE] = {"accept_queue", "accept queue", "", 1},
	[FIGURE_LOST] = {"kernel_lost", "lost by the kernel", "/s", 1},
	[FIGURE_BUSY] = {"busy_processors", "processors in use", "", 1},
	[FIGURE_HITS] = {"cache_hit_ratio", "files found in the cache", "%", 100},
};

static double sum_of_rates(const struct moment *from, const struct moment *to, enum value first, enum value last) {
	double sum = 0;
	for (unsigned i = first; i <= last; i++) sum += history_rate(from, to, (enum value)i);
	return sum;
}

uint64_t view_connections(const struct counters *c) {
	uint64_t sum = 0;
	for (unsigned i = GAUGE_CONNECTIONS_PROXY; i <= GAUGE_CONNECTIONS_LINGER; i++) sum += c->value[i];
	return sum;
}

static double errors(const struct moment *from, const struct moment *to) {
	uint64_t sum = 0;
	for (unsigned i = 500 - STATUS_FIRST; i < STATUSES; i++)
		sum += counters_answers(&to->sum, i) - counters_answers(&from->sum, i);
	return to->ms > from->ms ? (double)sum * 1000 / (double)(to->ms - from->ms) : 0;
}

static double hit_ratio(const struct moment *from, const struct moment *to) {
	double hits = history_rate(from, to, COUNT_CACHE_HITS);
	return hits ? hits / (hits + history_rate(from, to, COUNT_CACHE_LOADED)) : 0;
}

double figure_of(const struct moment *from, const struct moment *to, enum figure figure) {
	switch (figure) {
	case FIGURE_REQUESTS: return sum_of_rates(from, to, COUNT_HTTP1, COUNT_HTTP2);
	case FIGURE_SENT: return history_rate(from, to, COUNT_SENT);
	case FIGURE_CONNECTIONS: return (double)view_connections(&to->sum);
	case FIGURE_FIRST_50: return history_quantile(from->sum.first_byte, to->sum.first_byte, 0.5);
	case FIGURE_FIRST_99: return history_quantile(from->sum.first_byte, to->sum.first_byte, 0.99);
	case FIGURE_DURATION_50: return history_quantile(from->sum.duration, to->sum.duration, 0.5);
	case FIGURE_DURATION_99: return history_quantile(from->sum.duration, to->sum.duration, 0.99);
	case FIGURE_ERRORS: return errors(from, to);
	case FIGURE_REFUSED: return sum_of_rates(from, to, COUNT_REFUSED_OVERLOAD, COUNT_LIMITED);
	case FIGURE_QUEUE: return (double)to->sum.value[KERNEL_QUEUE];
	case FIGURE_LOST: return history_rate(from, to, KERNEL_DROPS); /* overflows are among them */
	case FIGURE_BUSY: return history_rate(from, to, COUNT_CPU_NS) / 1e9;
	case FIGURE_HITS: return hit_ratio(from, to);
	case FIGURES: break;
	}
	return 0;
}
