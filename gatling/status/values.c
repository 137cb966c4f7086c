/* values.c - see values.h. */
#include "gatling/status/values.h"

#include <string.h>

#define CONNECTIONS(which) .family = "connections", .label = "state", .text = (which)
#define REFUSED(which) .family = "refused_connections", .label = "reason", .text = (which), .grows = true
#define CLOSED(which) .family = "closed_connections", .label = "reason", .text = (which), .grows = true
#define HANDSHAKES(which) .family = "tls_handshakes", .label = "result", .text = (which), .grows = true
#define CACHE(which) .family = "cache_lookups", .label = "result", .text = (which), .grows = true

const struct value_name value_name[VALUES] = {
	[COUNT_ACCEPTED] = {.family = "accepted_connections",
						.grows = true,
						.help = "Connections accepted, without those that were refused."},
	[COUNT_HTTP1] =
		{.family = "requests", .label = "protocol", .text = "http/1", .grows = true, .help = "Requests answered."},
	[COUNT_HTTP2] = {.family = "requests", .label = "protocol", .text = "http/2", .grows = true},
	[COUNT_SENT] = {.family = "sent_bytes",
					.unit = "bytes",
					.grows = true,
					.help = "Bytes of answers given to the kernel, before TLS."},
	[COUNT_TLS_FULL] = {HANDSHAKES("full"), .help = "TLS handshakes. Late ones are in closed_connections."},
	[COUNT_TLS_RESUMED] = {HANDSHAKES("resumed")},
	[COUNT_TLS_FAILED] = {HANDSHAKES("failed")},
	[COUNT_CACHE_HITS] = {CACHE("hit"), .help = "Files that were looked up: remembered, opened anew, or not there."},
	[COUNT_CACHE_LOADED] = {CACHE("loaded")},
	[COUNT_CACHE_ABSENT] = {CACHE("absent")},
	[COUNT_REFUSED_OVERLOAD] = {REFUSED("overload"),
								.help = "Connections refused: more came than could be served "
										"(about so many), they came from an address with many when "
										"there was no room, or were over --limit address-connections."},
	[COUNT_REFUSED_HEAVY] = {REFUSED("full")},
	[COUNT_REFUSED_LIMIT] = {REFUSED("limit")},
	[COUNT_LIMITED] = {.family = "refused_requests",
					   .grows = true,
					   .help = "Requests over the limits rate, address-rate or address-requests."},
	[COUNT_CLOSED_IDLE] = {CLOSED("idle"), .help = "Connections closed: idle or with an unfinished request to make "
												   "room, slower than --limit min-rate, over a budget of memory; "
												   "after the limits keepalive-timeout, head-timeout or timeout."},
	[COUNT_CLOSED_UNFINISHED] = {CLOSED("unfinished")},
	[COUNT_CLOSED_SLOW] = {CLOSED("slow")},
	[COUNT_CLOSED_MEMORY] = {CLOSED("memory")},
	[COUNT_CLOSED_KEEPALIVE] = {CLOSED("keepalive")},
	[COUNT_CLOSED_LATE] = {CLOSED("late")},
	[COUNT_CLOSED_STALLED] = {CLOSED("stalled")},
	[COUNT_LOG_DROPPED] = {.family = "log_dropped_lines",
						   .grows = true,
						   .help = "Lines of the access log that were dropped, because it could not be written."},
	[COUNT_CPU_NS] = {.family = "worker_cpu_seconds",
					  .unit = "seconds",
					  .grows = true,
					  .per_unit = 1000000000,
					  .help = "Processor time of the worker's thread."},
	[GAUGE_CONNECTIONS_PROXY] = {CONNECTIONS("proxy"), .help = "Connections by what they do or wait for."},
	[GAUGE_CONNECTIONS_HANDSHAKE] = {CONNECTIONS("handshake")},
	[GAUGE_CONNECTIONS_IDLE] = {CONNECTIONS("idle")},
	[GAUGE_CONNECTIONS_HEAD] = {CONNECTIONS("head")},
	[GAUGE_CONNECTIONS_CONTINUE] = {CONNECTIONS("continue")},
	[GAUGE_CONNECTIONS_BODY] = {CONNECTIONS("body")},
	[GAUGE_CONNECTIONS_JOB] = {CONNECTIONS("job")},
	[GAUGE_CONNECTIONS_PASS] = {CONNECTIONS("pass")},
	[GAUGE_CONNECTIONS_WRITE] = {CONNECTIONS("write")},
	[GAUGE_CONNECTIONS_HTTP2] = {CONNECTIONS("http2")},
	[GAUGE_CONNECTIONS_LINGER] = {CONNECTIONS("linger")},
	[GAUGE_CONNECTIONS_MAX] = {.family = "connections_max", .help = "Connections that there is room for."},
	[GAUGE_STREAMS] = {.family = "http2_streams", .help = "Streams of HTTP/2 that are open."},
	[GAUGE_MEMORY] = {.family = "memory_bytes",
					  .unit = "bytes",
					  .help = "Memory that connections take, with that of OpenSSL (--limit memory limits it)."},
	[GAUGE_MEMORY_MAX] = {.family = "memory_max_bytes", .unit = "bytes", .help = "Its limit."},
	[GAUGE_CLIENT_MEMORY] = {.family = "client_memory_bytes",
							 .unit = "bytes",
							 .help = "Memory that is kept for clients (--limit client-memory limits it)."},
	[GAUGE_CLIENT_MEMORY_MAX] = {.family = "client_memory_max_bytes", .unit = "bytes", .help = "Its limit."},
	[GAUGE_CACHE_FILES] = {.family = "cache_files", .help = "Files that are remembered."},
	[GAUGE_CACHE_BYTES] = {.family = "cache_bytes", .unit = "bytes", .help = "Their contents and fields in memory."},
	[GAUGE_CACHE_DESCRIPTORS] = {.family = "cache_descriptors", .help = "Those of them that are open."},
	[GAUGE_JOBS] = {.family = "jobs",
					.help = "Work beside the loop that is not finished: compression, hashes, listings, passwords."},
	[KERNEL_QUEUE] = {.family = "accept_queue", .help = "Connections that wait to be accepted, in the longest queue."},
	[KERNEL_QUEUE_MAX] = {.family = "accept_queue_max", .help = "Its limit."},
	[KERNEL_OVERFLOWS] = {.family = "kernel_listen_overflows",
						  .grows = true,
						  .help = "Connections of the machine that found an accept queue full, since the start."},
	[KERNEL_DROPS] = {.family = "kernel_listen_drops",
					  .grows = true,
					  .help = "Connections of the machine that the kernel dropped before they were accepted."},
	[KERNEL_COOKIES] = {.family = "kernel_syn_cookies", .grows = true, .help = "SYN cookies sent by the machine."},
	[KERNEL_SEGMENTS] = {.family = "kernel_sent_segments", .grows = true, .help = "TCP segments sent."},
	[KERNEL_RETRANSMITS] = {.family = "kernel_retransmitted_segments", .grows = true, .help = "And sent again."},
	[KERNEL_TCP_MEMORY] = {.family = "kernel_tcp_memory_bytes",
						   .unit = "bytes",
						   .help = "Memory of all TCP sockets of the machine."},
	[KERNEL_TCP_MEMORY_MAX] = {.family = "kernel_tcp_memory_pressure_bytes",
							   .unit = "bytes",
							   .help = "From here on the kernel makes their buffers smaller (tcp_mem)."},
	[KERNEL_RESIDENT] = {.family = "resident_memory_bytes",
						 .unit = "bytes",
						 .help = "Memory of the process that is not swapped out."},
};

bool value_begins_family(unsigned value) {
	return !value || strcmp(value_name[value].family, value_name[value - 1].family) != 0;
}
