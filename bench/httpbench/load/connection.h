/* connection.h - the connections of a client: what is under way on each, how it leaves, and how it ends. All that two
 * files, client.c and connection.c, share of a client; the rest of the program sees client.h. */
#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench/httpbench/load/measures.h"
#include "bench/httpbench/load/plan.h"
#include "bench/httpbench/load/schedule.h"
#include "bench/httpbench/load/tls.h"
#include "io/io.h"

/* A request under way. */
struct pending {
	int64_t due_ns, placed_ns, sent_ns, first_ns; /* first_ns: of its answer; 0: not yet */
	unsigned target;
	bool again; /* it was on another connection before */
};

/* In this order; without TLS there is no handshake. */
enum state { STATE_CLOSED, STATE_CONNECTING, STATE_HANDSHAKE, STATE_OPEN };

/* Those closed; in open loop, those without a request, and those with some that can take another. First in, first out.
 */
enum list { LIST_NONE, LIST_CLOSED, LIST_IDLE, LIST_ROOM, LISTS };

struct connection {
	int fd;
	uint8_t state, list;
	uint16_t first;        /* the pending request whose answer comes next */
	uint16_t assigned;     /* requests under way */
	uint16_t written;      /* of them handed to the kernel, and */
	uint32_t partly;       /* bytes of the one after them */
	bool broken;           /* it takes no more requests, but answers may be there */
	uint32_t requests;     /* ever assigned */
	uint32_t input_length; /* bytes of a head that is not complete */
	int32_t previous, next;
	int64_t since_ns; /* when it began to be what its state says, before it is open */
	char *input;
	tls_stream *tls; /* NULL: in the clear */
	struct response response;
};

/* A request that waits for a connection. */
struct waiting {
	int64_t due_ns;
	bool again; /* it had one, which was closed */
};

struct client {
	const struct plan *plan;
	unsigned number;
	io_loop *loop;
	struct tls *tls; /* NULL: in the clear */
	struct schedule schedule;
	int64_t started_ns, end_ns, now_ns, tick_ns, handed_over_ns, open_again_ns;
	bool busy;                /* the last turn had something to do */
	int64_t busy_ns;          /* and when one had */
	int64_t crowded_until_ns; /* others want its processor */
	int64_t idle_ns, cpu_ns;  /* waited since the last tick; processor time of the thread at it */
	uint64_t requests_left;
	struct connection *connection;
	unsigned connections, open;       /* open: of them */
	uint32_t sources_taken;           /* connections ever opened */
	struct pending *pending;          /* plan->depth for each connection */
	int32_t head[LISTS], tail[LISTS]; /* -1: empty */
	unsigned under_way;               /* requests */
	struct waiting *waiting;          /* for a connection; a ring */
	unsigned waiting_first, waiting_count;
	struct measures *filling;
	char *input; /* for what is read */
	/* shared with the main thread */
	pthread_t thread;
	pthread_mutex_t mutex;
	struct measures *collected;
	bool started, ended;
	atomic_bool stop;
};

/* So large is client.input; a head has to fit. */
enum { READ_MAX = 256 * 1024 };

static inline bool open_loop(const struct client *c) { return c->plan->rate > 0; }

/* A connection of a list, which it leaves; NULL: the list is empty. */
struct connection *connection_take(struct client *c, enum list list);

/* Whether it can take another request. */
bool connection_has_room(const struct client *c, const struct connection *conn);

/* Makes a request of it, from now_ns on, to leave with connection_open() or connection_write(). It has room. */
void connection_assign(struct client *c, struct connection *conn, int64_t due_ns, bool again);

/* Opens one that is closed and not listed, for the requests that are assigned. Their failures are counted, if so. */
void connection_open(struct client *c, struct connection *conn);

/* Goes on with what is to leave, from connection to handshake to requests. */
void connection_write(struct client *c, struct connection *conn);

/* Takes what has come in. false: it is closed now. */
bool connection_read(struct client *c, struct connection *conn);

/* Closes it; what is under way on it fails. In closed loop, and at a limit of this process, none is opened for a while
 * if it could not be. */
void connection_fail(struct client *c, struct connection *conn, enum failure failure);

/* Closes it; nothing is under way. A closed one becomes one that is listed as such. */
void connection_close(struct client *c, struct connection *conn);

/* --- of client.c --- */

/* A request is not to be answered by its connection, which is closed: in open loop another one gets one that was due at
 * the same time, in closed loop one more is due whenever there is a place for it. */
void client_give_back(struct client *c, int64_t due_ns);

#endif
