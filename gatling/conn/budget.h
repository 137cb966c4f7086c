/* budget.h - how much memory is kept for clients. What counts is everything that is taken because a client has sent or
 * not read something: input, requests that wait, streams, header tables, answers and the log lines of them, sealed
 * records. A new kind of thing that is kept is a new line in memory() (conn.c). What a connection takes anyway (its
 * structures, OpenSSL's) is limited by the number of connections and, for TLS, by --memory; what files and listings
 * take, by their caches. */
#ifndef GATLING_CONN_BUDGET_H
#define GATLING_CONN_BUDGET_H

enum {
	BUDGET_CONNECTION = 512 * 1024,   /* bytes for one connection; over it, it is closed */
	BUDGET_PASSES = 2 * 1024 * 1024,  /* for one of HTTP/2 if requests are passed on, of which it has many at once */
	BUDGET_WORKER = 64 * 1024 * 1024, /* for all of a worker, unless --client-memory says otherwise; over it, the
										 dearest are closed */
	BUDGET_RELIEF = 8,                /* until this part of it is free again */
	BUDGET_MACHINE = 4,               /* this part of the memory of the machine, unless --memory says otherwise */
	BUDGET_RETURN = 16 * 1024 * 1024  /* free memory goes back to the system when so much was held, and a quarter is */
};

#endif
