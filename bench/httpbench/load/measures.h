/* measures.h - durations, counts and failures of a period. */
#ifndef BENCH_MEASURES_H
#define BENCH_MEASURES_H

#include <stddef.h>

#include "bench/httpbench/statistics/histogram.h"
#include "bench/httpbench/transport/quic.h"
#include "bench/httpbench/transport/tls.h"

/* Durations, from one event to another. */
enum duration {
	DURATION_CONNECT,    /* from connect(2) until the connection is established */
	DURATION_HANDSHAKE,  /* of TLS, from then on; of QUIC, which has no other */
	DURATION_UPGRADE,    /* to a WebSocket, from then on */
	DURATION_FIRST_BYTE, /* from handing the request to the kernel until the first byte of the response is read */
	DURATION_WHOLE,      /* from when the request is due until the last byte of the response is read */
	DURATION_LATENESS,   /* open loop: from when the request is due until it is assigned to a connection */
	DURATIONS
};

/* The reason why a request was not answered. */
enum failure {
	FAILURE_REFUSED,     /* ECONNREFUSED */
	FAILURE_RESET,       /* the connection was reset */
	FAILURE_TIMEOUT,     /* no response in time */
	FAILURE_SHORT,       /* the response ended too early */
	FAILURE_STATUS,      /* not the expected status */
	FAILURE_BYTES,       /* not the expected content */
	FAILURE_PROTOCOL,    /* not HTTP */
	FAILURE_WEBSOCKET,   /* not a WebSocket: the response to the upgrade, or a frame */
	FAILURE_PORTS,       /* no free port of a source address (EADDRNOTAVAIL) */
	FAILURE_DESCRIPTORS, /* EMFILE, ENFILE */
	FAILURE_CONNECT,     /* another error of connect(2), or one of bind(2) */
	FAILURE_TLS,         /* in a handshake, or in a record */
	FAILURE_UNSENT,      /* open loop: no connection until the end, or the backlog was full */
	FAILURES
};

/* Other counts. */
enum count {
	COUNT_SENT,      /* requests */
	COUNT_ANSWERED,  /* requests: complete responses, as expected, */
	COUNT_LATE,      /* and of these, those that came when the load had ended */
	COUNT_WAITED,    /* requests that found all connections in use */
	COUNT_DROPPED,   /* requests that were under way, or waited, when a signal ended the run */
	COUNT_CONNECTED, /* connections that were established */
	COUNT_RESUMED,   /* of these, those with a resumed TLS session */
	COUNT_BYTES,     /* read */
	COUNTS
};

enum { MEASURES_TEXT = 128, MEASURES_STATUSES = 1000 };

struct measures {
	struct histogram duration[DURATIONS]; /* a failure is censored in DURATION_WHOLE, and in the step that failed */
	uint64_t count[COUNTS];
	uint64_t spun_ns;  /* processor time of polling */
	int64_t queued_ns; /* how long threads waited for a processor, added up */
	int64_t last_ns;   /* when the last request was answered, by CLOCK_MONOTONIC, */
	int64_t ended_ns;  /* or failed, if that was later */
	uint64_t failure[FAILURES];
	uint64_t status[MEASURES_STATUSES];       /* how often each unexpected status came */
	int connect_error;                        /* errno of the first connection that failed; 0: none */
	char tls[TLS_TEXT], tls_failed[TLS_TEXT]; /* what a handshake agreed on; why the first one failed; or empty */
	char source_failed[MEASURES_TEXT];        /* the first source address that is not a local one, or empty */
	char websocket_failed[MEASURES_TEXT];     /* why the first upgrade or WebSocket failed, or empty */
	char quic_failed[QUIC_TEXT];              /* why the first connection of HTTP/3 with requests ended, or empty */
};

/* The names in reports and logs. */
extern const char *const duration_name[DURATIONS];
extern const char *const failure_name[FAILURES];
extern const char *const count_name[COUNTS];

void measures_add(struct measures *sum, const struct measures *m);
void measures_reset(struct measures *m);

/* Returns the reason for which a connection has failed with errno. */
enum failure measures_reason(int error);

uint64_t measures_failed(const struct measures *m);

/* Returns whether WebSockets were requested and none was opened; websocket_failed has the reason. */
bool measures_no_upgrade(const struct measures *m);

/* Lists the unexpected statuses in text, the most frequent first: "503", or "503 61000, 404 721, ...". */
void measures_statuses(const struct measures *m, char *text, size_t size);

/* Counts a request that was due and did not get a connection by now_ns. */
void measures_unsent(struct measures *m, int64_t now_ns);

#endif
