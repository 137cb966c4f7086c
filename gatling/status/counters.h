/* counters.h - what a worker counts. Only its own thread writes its counters, without locks; others read them while
 * they grow. Counting costs an addition; how long answers take is measured of some of them only, see
 * counters_sample(). */
#ifndef GATLING_STATUS_COUNTERS_H
#define GATLING_STATUS_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

/* What there is to know, in the order in which it is shown; what it is called is in values.c. */
enum value {
	/* counters: they grow */
	COUNT_ACCEPTED,
	COUNT_HTTP1, /* answers: these two are sums, see counters_value() */
	COUNT_HTTP2,
	COUNT_SENT, /* bytes of answers, before TLS */
	COUNT_TLS_FULL,
	COUNT_TLS_RESUMED,
	COUNT_TLS_FAILED,
	COUNT_CACHE_HITS,       /* files that were remembered and valid, */
	COUNT_CACHE_LOADED,     /* that were opened, */
	COUNT_CACHE_ABSENT,     /* and that are not there or not served */
	COUNT_REFUSED_OVERLOAD, /* connections: more came than could be served (about), */
	COUNT_REFUSED_HEAVY,    /* of addresses with many when there was no room, */
	COUNT_REFUSED_LIMIT,    /* over --address-connections */
	COUNT_LIMITED,          /* requests over --rate, --address-rate, --address-requests */
	COUNT_CLOSED_IDLE,      /* connections that made room for others, */
	COUNT_CLOSED_UNFINISHED,
	COUNT_CLOSED_SLOW,      /* slower than --min-rate, */
	COUNT_CLOSED_MEMORY,    /* over a budget of memory, */
	COUNT_CLOSED_KEEPALIVE, /* idle for --keepalive-timeout, */
	COUNT_CLOSED_LATE,      /* with a handshake or head that took longer than --head-timeout, */
	COUNT_CLOSED_STALLED,   /* and whose client did not go on for --timeout */
	COUNT_LOG_DROPPED,      /* lines of the access log */
	COUNT_CPU_NS,           /* of the worker's thread */
	/* gauges: they come and go */
	GAUGE_CONNECTIONS_PROXY, /* connections by what they do, in the order of enum conn_state */
	GAUGE_CONNECTIONS_HANDSHAKE,
	GAUGE_CONNECTIONS_IDLE,
	GAUGE_CONNECTIONS_HEAD,
	GAUGE_CONNECTIONS_CONTINUE,
	GAUGE_CONNECTIONS_BODY,
	GAUGE_CONNECTIONS_JOB,
	GAUGE_CONNECTIONS_PASS,
	GAUGE_CONNECTIONS_WRITE,
	GAUGE_CONNECTIONS_HTTP2,
	GAUGE_CONNECTIONS_LINGER,
	GAUGE_CONNECTIONS_MAX,
	GAUGE_STREAMS,
	/* said once a second while something happens, as the two counters before */
	GAUGE_MEMORY, /* bytes that connections take, of GAUGE_MEMORY_MAX */
	GAUGE_MEMORY_MAX,
	GAUGE_CLIENT_MEMORY, /* and of them those that are kept for clients, of GAUGE_CLIENT_MEMORY_MAX */
	GAUGE_CLIENT_MEMORY_MAX,
	GAUGE_CACHE_FILES,
	GAUGE_CACHE_BYTES,
	GAUGE_CACHE_DESCRIPTORS,
	GAUGE_JOBS,
	WORKER_VALUES,
	/* what the kernel says, of the machine or of the process */
	KERNEL_QUEUE = WORKER_VALUES, /* the longest accept queue, and its limit */
	KERNEL_QUEUE_MAX,
	KERNEL_OVERFLOWS, /* since the start of the server */
	KERNEL_DROPS,
	KERNEL_COOKIES,
	KERNEL_SEGMENTS,
	KERNEL_RETRANSMITS,
	KERNEL_TCP_MEMORY,
	KERNEL_TCP_MEMORY_MAX,
	KERNEL_RESIDENT,
	VALUES
};

enum {
	STATUS_FIRST = 100, /* of HTTP */
	STATUSES = 900,     /* an upstream may answer with any of three digits */
	PROTOCOLS = COUNT_HTTP2 + 1 - COUNT_HTTP1,
	/* Times are counted in intervals of an eighth of their power of two: up to 2^10 ns in the first, 2^36 ns (69 s) and
	 * more in the last. */
	TIMES_SHIFT = 3,
	TIMES_FIRST = 10,
	TIMES_LAST = 36,
	TIMES = ((TIMES_LAST - TIMES_FIRST) << TIMES_SHIFT) + 2,
	/* The times of so many answers are measured at the start of each second, and then of one in so many. */
	SAMPLED_AT_FIRST = 16,
	SAMPLE_WEIGHT = 64
};

struct counters {
	uint64_t value[VALUES];
	uint64_t answers[PROTOCOLS][STATUSES]; /* by protocol less COUNT_HTTP1, and status less STATUS_FIRST */
	/* of answers, from when the request was there: until the first byte, or all of them, were given to the kernel */
	uint64_t first_byte[TIMES], duration[TIMES];
	uint64_t first_byte_ns, duration_ns; /* sums */
	unsigned sampled, left;              /* of counters_sample(): in this second; answers until the next */
};

/* The counters of the thread that runs. Threads that are no workers have some in common, which are not read. */
extern _Thread_local struct counters *counters;

/* Reads a counter of another thread. */
static inline uint64_t counter_read(const uint64_t *counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

static inline void counter_set(uint64_t *counter, uint64_t n) { __atomic_store_n(counter, n, __ATOMIC_RELAXED); }

static inline void counter_add(uint64_t *counter, uint64_t n) { counter_set(counter, *counter + n); }

static inline void count_n(enum value value, uint64_t n) { counter_add(&counters->value[value], n); }

static inline void count_one(enum value value) { count_n(value, 1); }

/* A gauge goes down. */
static inline void uncount_one(enum value value) { counter_add(&counters->value[value], (uint64_t)-1); }

static inline void gauge_set(enum value value, uint64_t n) { counter_set(&counters->value[value], n); }

static inline void count_answer(enum value protocol, int status) {
	counter_add(&counters->answers[protocol - COUNT_HTTP1][status - STATUS_FIRST], 1);
}

/* Returns how many answers had the status that is so much more than STATUS_FIRST. */
static inline uint64_t counters_answers(const struct counters *c, unsigned status) {
	return c->answers[0][status] + c->answers[1][status];
}

/* Chooses the answers whose times are measured: all while there are few, so that a quiet server has something to show,
 * and otherwise a part, as reading the clock costs more than counting. Returns how many answers the next one stands
 * for; 0: it is not measured. */
static inline unsigned counters_sample(void) {
	struct counters *c = counters;
	if (c->left > 1) {
		c->left--;
		return 0;
	}
	return c->left = c->sampled++ < SAMPLED_AT_FIRST ? 1 : SAMPLE_WEIGHT;
}

/* To be called once a second. */
static inline void counters_second(void) { counters->sampled = 0; }

/* Count a time of some answers. */
void count_first_byte(int64_t ns, unsigned answers);
void count_duration(int64_t ns, unsigned answers);

/* Returns the longest time, in ns, that is counted in an interval; UINT64_MAX for the last. */
uint64_t times_limit(unsigned interval);

/* Returns the time, in ns, that a share of what was counted (0 to 1) did not exceed; 0: nothing was counted. */
uint64_t times_quantile(const uint64_t times[TIMES], double share);

/* Returns one of those of another thread: not what the kernel says. */
uint64_t counters_value(const struct counters *c, enum value value);

/* Adds counters that another thread may be writing to a sum: those of a worker, not those of the kernel. */
void counters_sum(struct counters *sum, const struct counters *c);

#endif
