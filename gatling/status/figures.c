/* figures.c - see view.h: rates, quantiles and what else is shown over time. */
#include "gatling/status/view.h"

static double rate(const struct figure *f, const struct moment *from, const struct moment *to) {
	const uint64_t per_unit = value_row[f->first].per_unit;
	double sum = 0;
	for (unsigned i = f->first; i <= f->last; i++) sum += history_rate(from, to, (enum value)i);
	return per_unit ? sum / (double)per_unit : sum;
}

static double level(const struct figure *f, const struct moment *from, const struct moment *to) {
	(void)from;
	uint64_t sum = 0;
	for (unsigned i = f->first; i <= f->last; i++) sum += to->sum.value[i];
	return (double)sum;
}

static double first_byte(const struct figure *f, const struct moment *from, const struct moment *to) {
	return history_quantile(from->sum.first_byte, to->sum.first_byte, f->share);
}

static double duration(const struct figure *f, const struct moment *from, const struct moment *to) {
	return history_quantile(from->sum.duration, to->sum.duration, f->share);
}

/* Answers of 500 and more. */
static double server_errors(const struct figure *f, const struct moment *from, const struct moment *to) {
	(void)f;
	uint64_t sum = 0;
	for (unsigned i = 500 - STATUS_FIRST; i < STATUSES; i++)
		sum += counters_answers(&to->sum, i) - counters_answers(&from->sum, i);
	return to->ms > from->ms ? (double)sum * 1000 / (double)(to->ms - from->ms) : 0;
}

/* The share of the existing files, as looked up, that were in the cache; 0: none was. */
static double hit_ratio(const struct figure *f, const struct moment *from, const struct moment *to) {
	(void)f;
	double hits = history_rate(from, to, COUNT_CACHE_HITS);
	return hits ? hits / (hits + history_rate(from, to, COUNT_CACHE_LOADED)) : 0;
}

#define PER_SECOND .unit = "/s", .scale = 1
#define MEGABYTES .unit = "MB/s", .scale = 1e-6
#define TIME .unit = "ms", .scale = 1e3
#define PERCENT .unit = "%", .scale = 100
#define NUMBER .unit = "", .scale = 1
#define CURVE(at, words) .curve = (at), .title = (words)
#define SUM(from, to) .first = (from), .last = (to)

const struct figure figures[] = {
	{"requests", "requests", PER_SECOND, CURVE(1, "Requests"), .of = rate, SUM(COUNT_HTTP1, COUNT_HTTP3)},
	{"sent_bytes", "sent", MEGABYTES, CURVE(2, "Sent"), .of = rate, SUM(COUNT_SENT, COUNT_SENT)},
	{"connections", "connections", NUMBER, CURVE(3, "Connections"), .of = level, .instant = true,
	 SUM(GAUGE_CONNECTIONS_PROXY, GAUGE_CONNECTIONS_HTTP3)},
	{"first_byte_p50_seconds", "first byte, median", TIME, CURVE(4, "First byte, median"), .of = first_byte,
	 .share = 0.5},
	{"first_byte_p99_seconds", "first byte, 99 %", TIME, CURVE(5, "First byte, 99 %"), .of = first_byte, .share = 0.99},
	{"duration_p50_seconds", "whole answer, median", TIME, .of = duration, .share = 0.5},
	{"duration_p99_seconds", "whole answer, 99 %", TIME, CURVE(6, "Whole answer, 99 %"), .of = duration, .share = 0.99},
	{"server_errors", "answers of 5xx", PER_SECOND, CURVE(9, "Answers of 5xx"), .of = server_errors},
	{"refused", "refused", PER_SECOND, CURVE(10, "Refused by the server"), .of = rate,
	 SUM(COUNT_REFUSED_OVERLOAD, COUNT_LIMITED)},
	{"accept_queue", "accept queue", NUMBER, CURVE(11, "Accept queue"), .of = level, .instant = true,
	 SUM(KERNEL_QUEUE, KERNEL_QUEUE)},
	/* overflows are among the drops */
	{"kernel_lost", "lost by the kernel", PER_SECOND, CURVE(12, "Lost by the kernel"), .of = rate,
	 SUM(KERNEL_DROPS, KERNEL_DROPS)},
	{"busy_processors", "processors in use", NUMBER, CURVE(7, "Processors in use"), .of = rate,
	 SUM(COUNT_CPU_NS, COUNT_CPU_NS)},
	{"cache_hit_ratio", "files found in the cache", PERCENT, CURVE(8, "Files found in the cache"), .of = hit_ratio},
	{0},
};
