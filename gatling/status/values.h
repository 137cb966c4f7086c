/* values.h - all values that are counted or measured, a row for each: where every view of the status page takes it
 * from, and what it is called there. */
#ifndef GATLING_STATUS_VALUES_H
#define GATLING_STATUS_VALUES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* V(NAME, the members of its struct value_row, for which values.c has short words), in the order of JSON and
 * OpenMetrics. The values of a family are next to each other, and the first has the HELP of all. A TOTAL only grows;
 * what is NOW falls, too. TEXT and PAGE say where people see it. */
#define VALUE_LIST(V)                                                                                                  \
	/* of a worker */                                                                                                  \
	V(COUNT_ACCEPTED, TOTAL("accepted_connections"), PAGE("Connections", "accepted since the start", ALWAYS, LAST),    \
	  HELP("Connections accepted, without those that were refused."))                                                  \
	/* these are sums, see counters_value() */                                                                         \
	V(COUNT_HTTP1, REQUESTS("http/1"), HELP("Requests answered."))                                                     \
	V(COUNT_HTTP2, REQUESTS("http/2"))                                                                                 \
	V(COUNT_HTTP3, REQUESTS("http/3"))                                                                                 \
	V(COUNT_SENT, TOTAL("sent_bytes"), BYTES, HELP("Bytes of answers given to the kernel, before TLS."))               \
	V(COUNT_TLS_FULL, HANDSHAKES("full"), HELP("TLS handshakes. Late ones are in closed_connections."))                \
	V(COUNT_TLS_RESUMED, HANDSHAKES("resumed"))                                                                        \
	V(COUNT_TLS_FAILED, HANDSHAKES("failed"))                                                                          \
	V(COUNT_CACHE_HITS, CACHE("hit"), HELP("Files that were looked up: remembered, opened anew, or not there."))       \
	V(COUNT_CACHE_LOADED, CACHE("loaded"))                                                                             \
	V(COUNT_CACHE_ABSENT, CACHE("absent"))                                                                             \
	V(COUNT_REFUSED_OVERLOAD, REFUSED("overload"),                                                                     \
	  HELP("Connections refused: more came than could be served (at least so many; of HTTP/3: their packets), they "   \
		   "came from an address with many when there was no room, or were over --limit address-connections."))        \
	V(COUNT_REFUSED_HEAVY, REFUSED("full"))                                                                            \
	V(COUNT_REFUSED_LIMIT, REFUSED("limit"))                                                                           \
	V(COUNT_LIMITED, TOTAL("refused_requests"), TEXT("over limits", ""), PAGE("Limits", "refused requests", ALWAYS),   \
	  HELP("Requests over the limits rate, address-rate or address-requests."))                                        \
	V(COUNT_CLOSED_IDLE, CLOSED("idle"),                                                                               \
	  HELP("Connections closed: idle or with an unfinished request to make room, slower than --limit min-rate or too " \
		   "slow for the kernel's memory, over a budget of memory; after the limits keepalive-timeout, head-timeout "  \
		   "or timeout."))                                                                                             \
	V(COUNT_CLOSED_UNFINISHED, CLOSED("unfinished"))                                                                   \
	V(COUNT_CLOSED_SLOW, CLOSED("slow"))                                                                               \
	V(COUNT_CLOSED_MEMORY, CLOSED("memory"))                                                                           \
	V(COUNT_CLOSED_KEEPALIVE, CLOSED("keepalive"))                                                                     \
	V(COUNT_CLOSED_LATE, CLOSED("late"))                                                                               \
	V(COUNT_CLOSED_STALLED, CLOSED("stalled"))                                                                         \
	V(COUNT_LOG_DROPPED, TOTAL("log_dropped_lines"), TEXT("log dropped", ""),                                          \
	  HELP("Lines of the access log that were dropped, because it could not be written."))                             \
	V(COUNT_CPU_NS, TOTAL("worker_cpu_seconds"), .unit = "seconds", .per_unit = 1000000000,                            \
	  HELP("Processor time of the worker's thread."))                                                                  \
	/* in the order of enum conn_state */                                                                              \
	V(GAUGE_CONNECTIONS_PROXY, CONNECTIONS("proxy"), HELP("Connections by what they do or wait for."))                 \
	V(GAUGE_CONNECTIONS_HANDSHAKE, CONNECTIONS("handshake"))                                                           \
	V(GAUGE_CONNECTIONS_IDLE, CONNECTIONS("idle"))                                                                     \
	V(GAUGE_CONNECTIONS_HEAD, CONNECTIONS("head"))                                                                     \
	V(GAUGE_CONNECTIONS_CONTINUE, CONNECTIONS("continue"))                                                             \
	V(GAUGE_CONNECTIONS_BODY, CONNECTIONS("body"))                                                                     \
	V(GAUGE_CONNECTIONS_JOB, CONNECTIONS("job"))                                                                       \
	V(GAUGE_CONNECTIONS_PASS, CONNECTIONS("pass"))                                                                     \
	V(GAUGE_CONNECTIONS_WRITE, CONNECTIONS("write"))                                                                   \
	V(GAUGE_CONNECTIONS_HTTP2, CONNECTIONS("http2"))                                                                   \
	V(GAUGE_CONNECTIONS_LINGER, CONNECTIONS("linger"))                                                                 \
	V(GAUGE_CONNECTIONS_HTTP3, CONNECTIONS("http3"))                                                                   \
	V(GAUGE_CONNECTIONS_MAX, NOW("connections_max"),                                                                   \
	  PAGE("Connections", "in all", ALWAYS, FIRST, PART("connections")), HELP("Connections that there is room for."))  \
	V(GAUGE_STREAMS, NOW("http2_streams"), PAGE("Connections", "streams of HTTP/2, HTTP/3", ALWAYS, LAST),             \
	  HELP("Streams of HTTP/2 and HTTP/3 that are open."))                                                             \
	/* set once a second while something happens, as are COUNT_LOG_DROPPED and COUNT_CPU_NS */                         \
	V(GAUGE_MEMORY, NOW("memory_bytes"), BYTES, TEXT("memory, MB", "connections", ALWAYS),                             \
	  HELP("Memory that connections take, with that of OpenSSL (--limit memory limits it)."))                          \
	V(GAUGE_MEMORY_MAX, NOW("memory_max_bytes"), BYTES, TEXT("memory, MB", "of at most", ALWAYS),                      \
	  PAGE("Limits", "memory of connections", ALWAYS, FIRST, PART("memory_bytes")), HELP("Its limit."))                \
	V(GAUGE_CLIENT_MEMORY, NOW("client_memory_bytes"), BYTES,                                                          \
	  HELP("Memory that is kept for clients (--limit client-memory limits it)."))                                      \
	V(GAUGE_CLIENT_MEMORY_MAX, NOW("client_memory_max_bytes"), BYTES,                                                  \
	  PAGE("Limits", "kept for clients", ALWAYS, FIRST, PART("client_memory_bytes")), HELP("Its limit."))              \
	V(GAUGE_CACHE_FILES, NOW("cache_files"), PAGE("Files", "remembered", ALWAYS), HELP("Files that are remembered."))  \
	V(GAUGE_CACHE_BYTES, NOW("cache_bytes"), BYTES, TEXT("memory, MB", "cache", ALWAYS),                               \
	  PAGE("Files", "in memory", ALWAYS), HELP("Their contents and fields in memory."))                                \
	V(GAUGE_CACHE_DESCRIPTORS, NOW("cache_descriptors"), PAGE("Files", "open", ALWAYS),                                \
	  HELP("Those of them that are open."))                                                                            \
	V(GAUGE_JOBS, NOW("jobs"), PAGE("Files", "work beside the loop", ALWAYS),                                          \
	  HELP("Work beside the loop that is not finished: compression, hashes, listings, passwords."))                    \
	V(GAUGE_HUNG, NOW("hung_calls"), PAGE("Files", "calls that hang"),                                                 \
	  HELP("Calls for files on other machines that have not returned for a second, each in a thread."))                \
	/* of the kernel, for the machine or for the process: kernel.c */                                                  \
	V(KERNEL_QUEUE, NOW("accept_queue"), TEXT("kernel", "queue", ALWAYS),                                              \
	  HELP("Connections that wait to be accepted, in the longest queue."))                                             \
	V(KERNEL_QUEUE_MAX, NOW("accept_queue_max"), TEXT("kernel", "of", ALWAYS),                                         \
	  PAGE("Kernel", "accept queue", ALWAYS, PART("accept_queue")), HELP("Its limit."))                                \
	V(KERNEL_OVERFLOWS, TOTAL("kernel_listen_overflows"), PROC("TcpExt:", "ListenOverflows"),                          \
	  TEXT("kernel", "overflows", ALWAYS), PAGE("Kernel", "queues that overflowed", ALWAYS),                           \
	  HELP("Connections of the machine that found an accept queue full, since the start."))                            \
	V(KERNEL_DROPS, TOTAL("kernel_listen_drops"), PROC("TcpExt:", "ListenDrops"), TEXT("kernel", "drops", ALWAYS),     \
	  PAGE("Kernel", "connections dropped", ALWAYS),                                                                   \
	  HELP("Connections that the kernel dropped before they were accepted; of the machine, unless it tells of each "   \
		   "socket."))                                                                                                 \
	V(KERNEL_COOKIES, TOTAL("kernel_syn_cookies"), PROC("TcpExt:", "SyncookiesSent"),                                  \
	  PAGE("Kernel", "SYN cookies", ALWAYS), HELP("SYN cookies sent by the machine."))                                 \
	V(KERNEL_SEGMENTS, TOTAL("kernel_sent_segments"), PROC("Tcp:", "OutSegs"),                                         \
	  PAGE("Kernel", "segments sent again", ALWAYS, PART("kernel_retransmitted_segments")),                            \
	  HELP("TCP segments sent."))                                                                                      \
	V(KERNEL_RETRANSMITS, TOTAL("kernel_retransmitted_segments"), PROC("Tcp:", "RetransSegs"),                         \
	  TEXT("kernel", "retransmits", ALWAYS), HELP("And sent again."))                                                  \
	V(KERNEL_TCP_MEMORY, NOW("kernel_tcp_memory_bytes"), BYTES, TEXT("kernel", "TCP MB", ALWAYS),                      \
	  HELP("Memory of all TCP sockets of the machine."))                                                               \
	V(KERNEL_TCP_MEMORY_MAX, NOW("kernel_tcp_memory_pressure_bytes"), BYTES,                                           \
	  PAGE("Kernel", "memory of TCP", ALWAYS, PART("kernel_tcp_memory_bytes")),                                        \
	  HELP("From here on the kernel makes their buffers smaller (tcp_mem)."))                                          \
	V(KERNEL_RESIDENT, NOW("resident_memory_bytes"), BYTES, TEXT("memory, MB", "process", ALWAYS, FIRST),              \
	  PAGE("Limits", "memory of the process", ALWAYS, FIRST), HELP("Memory of the process that is not swapped out."))

/* Of an upstream: `which` is its name in JSON and in the text. Its label is "upstream", with the address. */
#define UPSTREAM_VALUE_LIST(V)                                                                                         \
	V(UPSTREAM_REQUESTS, .which = "requests", TOTAL("upstream_requests"),                                              \
	  HELP("Requests that were passed on to an upstream, each attempt."))                                              \
	V(UPSTREAM_RESPONSES, .which = "responses", TOTAL("upstream_responses"),                                           \
	  HELP("Responses of which the head has come."))                                                                   \
	V(UPSTREAM_ERRORS, .which = "errors", TOTAL("upstream_errors"), HELP("Of them those with a status of 5xx."))       \
	V(UPSTREAM_FAILURES, .which = "failures", TOTAL("upstream_failures"),                                              \
	  HELP("Attempts without a connection, or without a whole response in time."))                                     \
	V(UPSTREAM_NS, .which = "response_seconds", TOTAL("upstream_response_seconds"), .unit = "seconds",                 \
	  .per_unit = 1000000000, HELP("Time from requests to the heads of their responses."))                             \
	V(UPSTREAM_ACTIVE, .which = "active", NOW("upstream_active_requests"), HELP("Requests under way."))                \
	V(UPSTREAM_IDLE, .which = "idle", NOW("upstream_idle_connections"),                                                \
	  HELP("Connections that are kept for the next request."))

#define VALUE_NAME(name, ...) name,
enum value { VALUE_LIST(VALUE_NAME) VALUES };
enum upstream_value { UPSTREAM_VALUE_LIST(VALUE_NAME) UPSTREAM_VALUES };
enum { WORKER_VALUES = KERNEL_QUEUE /* those of a worker come first */ };

/* Where a view for people shows a value. */
struct place {
	const char *in;    /* a line of the text or a table of the page; those views have their order */
	const char *words; /* beside the number */
	const char *part;  /* the page shows how much of the value this family is; NULL: only the value */
	bool always;       /* even if it is 0 */
	int order;         /* -1: before others there, 1: after them */
};
enum { IN_TEXT, IN_PAGE, PLACES };

struct value_row {
	const char *family;         /* without "gatling_" */
	const char *label, *which;  /* tell it from the others of its family; NULL: it is alone */
	const char *unit;           /* in which the family's name ends; NULL: none */
	bool grows;                 /* a counter, otherwise a gauge */
	const char *help;           /* only for the first of a family */
	uint64_t per_unit;          /* how many make one unit, as 1000000000 ns a second; 0: 1 */
	const char *table, *number; /* in /proc/net/netstat or snmp */
	struct place place[PLACES];
};

extern const struct value_row value_row[VALUES], upstream_value_row[UPSTREAM_VALUES];

/* Returns whether a value is the first of its family. */
bool value_begins_family(unsigned value);

/* Lists the values in a line or table, in the order in which they are shown. Returns how many. */
unsigned values_in(unsigned place, const char *in, enum value list[VALUES]);

/* Writes a number in its unit. */
void value_print(FILE *out, const struct value_row *row, uint64_t number);

#endif
