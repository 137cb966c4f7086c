/* budget.h - limits of the memory that is kept for clients. It counts what is kept because a client has sent or not
 * read something: input, requests that wait, streams, header tables, responses with their log lines, and encrypted
 * records. memory() in conn.c and http3_memory() add these up; anything else that is to be kept has to be added there.
 * Memory that every connection takes (its structures, OpenSSL's) is limited by the number of connections and, for TLS,
 * by --limit memory; that of files and listings by their caches. */
#ifndef GATLING_CONN_BUDGET_H
#define GATLING_CONN_BUDGET_H

enum {
	BUDGET_CONNECTION = 512 * 1024,   /* bytes for one connection; with more it is closed */
	BUDGET_PASSES = 2 * 1024 * 1024,  /* the same for HTTP/2 if requests are passed on: many may be under way */
	BUDGET_WORKER = 64 * 1024 * 1024, /* bytes for all connections of a worker, the default of --limit client-memory;
										 with more, those that take most are closed */
	BUDGET_RELIEF = 8,                /* until this part (1/8) is free */
	BUDGET_QUIC = 2,                  /* this part (1/2) of --limit memory is the most that QUIC takes beside that */
	BUDGET_MACHINE = 4,               /* this part (1/4) of the machine's memory is the default of --limit memory */
	BUDGET_RETURN = 16 * 1024 * 1024  /* free memory returns to the system when so much was held, and 1/4 still is */
};

#endif
