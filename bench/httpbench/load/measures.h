/* measures.h - durations, counts and failures of a span of time. */
#ifndef BENCH_MEASURES_H
#define BENCH_MEASURES_H

#include <stddef.h>

#include "bench/httpbench/load/histogram.h"
#include "bench/httpbench/load/tls.h"

/* Durations: from when until when. */
enum duration {
	DURATION_CONNECT,    /* connect(2) until the connection stands */
	DURATION_HANDSHAKE,  /* of TLS, from there on */
	DURATION_UPGRADE,    /* to a WebSocket, from there on */
	DURATION_FIRST_BYTE, /* the request is handed to the kernel until the first byte of the answer is read */
	DURATION_WHOLE,      /* the request is due until the last byte of its answer is read */
	DURATION_LATENESS,   /* open loop: the request is due until a connection gets it or is opened for it */
	DURATIONS
};

/* Why a request was not answered. */
enum failure {
	FAILURE_REFUSED,     /* ECONNREFUSED */
	FAILURE_RESET,       /* the connection was broken off */
	FAILURE_TIMEOUT,     /* no answer in time */
	FAILURE_SHORT,       /* the answer ended before its length */
	FAILURE_STATUS,      /* not the status that was wanted */
	FAILURE_BYTES,       /* not the bytes that were expected */
	FAILURE_PROTOCOL,    /* not HTTP */
	FAILURE_WEBSOCKET,   /* not a WebSocket: the answer to the upgrade, or a frame */
	FAILURE_PORTS,       /* no free port for a source address (EADDRNOTAVAIL) */
	FAILURE_DESCRIPTORS, /* EMFILE, ENFILE */
	FAILURE_CONNECT,     /* connect(2) failed otherwise, or bind(2) */
	FAILURE_TLS,         /* a handshake, or a record */
	FAILURE_UNSENT,      /* open loop: waited for a connection until the end, or behind too many others */
	FAILURES
};

/* What is counted. */
enum count {
	COUNT_SENT,      /* requests */
	COUNT_ANSWERED,  /* of them: whole and as wanted */
	COUNT_WAITED,    /* requests that found all connections in use */
	COUNT_DROPPED,   /* requests that were under way or waited when a signal ended the run */
	COUNT_CONNECTED, /* connections that were established */
	COUNT_RESUMED,   /* TLS sessions, of them */
	COUNT_BYTES,     /* read */
	COUNTS
};

enum { MEASURES_TEXT = 128, MEASURES_STATUSES = 1000 };

struct measures {
	struct histogram duration[DURATIONS]; /* what failed is censored in whole, and in that which failed */
	uint64_t count[COUNTS];
	uint64_t spun_ns;  /* processor time of looking for work in vain */
	int64_t queued_ns; /* for which threads waited for a processor; of all together */
	int64_t last_ns;   /* when the last was answered, on CLOCK_MONOTONIC; */
	int64_t ended_ns;  /* or failed, if that was later */
	uint64_t failure[FAILURES];
	uint64_t status[MEASURES_STATUSES];       /* how often each came that was not wanted */
	int connect_error;                        /* errno of the first connection that could not be made; 0: none */
	char tls[TLS_TEXT], tls_failed[TLS_TEXT]; /* what a handshake agreed on; why one failed; empty: none did */
	char source_failed[MEASURES_TEXT];        /* the first source address that is not this machine's; empty: none */
	char websocket_failed[MEASURES_TEXT];     /* why the first upgrade or WebSocket did; empty: none */
};

/* Their names in reports and logs. */
extern const char *const duration_name[DURATIONS];
extern const char *const failure_name[FAILURES];
extern const char *const count_name[COUNTS];

void measures_add(struct measures *sum, const struct measures *m);
void measures_reset(struct measures *m);
uint64_t measures_failed(const struct measures *m);

/* Whether servers were asked for a WebSocket and none was opened; websocket_failed says why. */
bool measures_no_upgrade(const struct measures *m);

/* Lists the statuses that were not wanted, the most frequent first, in text: "503", or "503 61000, 404 721, ...". */
void measures_statuses(const struct measures *m, char *text, size_t size);

/* Counts a request that was due and got no connection until now_ns. */
void measures_unsent(struct measures *m, int64_t now_ns);

#endif
