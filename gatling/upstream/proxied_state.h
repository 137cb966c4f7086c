/* proxied_state.h - the inside of a proxied request. proxied_life.c has its beginning and end, proxied_response.c reads
 * from the upstream, and proxied_request.c writes to it and chooses the connection. A file calls only those behind it
 * in this list. */
#ifndef GATLING_UPSTREAM_PROXIED_STATE_H
#define GATLING_UPSTREAM_PROXIED_STATE_H

#include "gatling/upstream/outgoing.h"
#include "gatling/upstream/proxied.h"

/* There may be thousands: the order of the members leaves hardly any gaps. */
struct proxied {
	struct upstreams *upstreams;
	io_loop *loop;              /* of these */
	struct upstream_link *link; /* NULL: it has failed, or content_first */
	char to[UPSTREAM_TEXT_MAX]; /* the address of the link after it is gone; "": not known */
	struct upstream_target *target;
	struct fcgi_records *records; /* those of the response (FastCGI), behind this struct; or NULL */
	struct writer *writer;        /* compresses the response, until all output has been taken; or NULL */
	void (*ready)(void *owner);
	void *owner;
	struct proxied_share *share; /* or NULL */
	struct upstream_asker asker; /* its site is behind this struct, and the records */
	struct upstream_limits limits;
	uint64_t held;         /* bytes of the request's content that have been put */
	int64_t waits_from_ms; /* when the time began that the upstream, or the client, has to act */
	int64_t timer_ms;      /* when the timer of the link fires, that time is over at the earliest; 0: it is not set */
	enum proxied_state state;
	int failure;
	enum coding coding; /* that the client prefers, until the head of the response has come; then identity */
	unsigned tried;     /* a bit for each address that has been tried */
	unsigned interims;
	unsigned stalls;      /* see proxied_stalls() */
	uint32_t sent;        /* bytes of the request since then */
	uint32_t answered_ms; /* before there is a response: when the proxied request began */
	bool starved;
	bool head_only, upgrades;
	bool compresses;     /* responses are compressed for clients that want it */
	bool must_change;    /* no success but 101 is allowed (RFC 8441, section 5) */
	bool repeatable;     /* the request has no content, and may be sent twice: it is kept until a response comes */
	bool expects;        /* the client may wait for a 100, and has sent no content */
	bool continues;      /* the client waits for a 100, which a program does not send */
	bool holds;          /* nothing is sent until the content is complete, or longer than PROXIED_HELD */
	bool content_first;  /* no connection is taken until content has come, or its end */
	bool complete;       /* all of the request has been put */
	bool shut;           /* the sending side of the connection has been shut down */
	bool blocked;        /* the socket is full */
	bool unwanted;       /* the upstream takes no more of the request; what it has sent can still be read */
	bool upstream_ended; /* the upstream sends nothing more */
	struct outgoing out;
	struct {
		char *bytes;
		size_t at, length, size;
	} in; /* bytes that were read; those from `at` on are still to be used */
	struct upstream_response head;
	char *lines; /* field lines of the head until it is taken, then of the trailer section; head.lines: bytes */
	struct body body;
	struct slice piece; /* the piece of content that the owner has */
	int splice_to;      /* the socket that content may go straight to, or -1 */
	uint64_t spliced;   /* bytes that went there, see proxied_spliced() */
};

/* --- proxied_request.c --- */

/* Does what proxied_fail() does, and reports what the upstream has done. */
void proxied_blame(struct proxied *proxied, int status, const char *what);

/* Reports a line that a program has written to its standard error; for fcgi_read(). */
void proxied_complain(void *proxied, struct slice line);

/* proxied_set_deadline() starts the time in which the upstream, or the client, has to act. proxied_note_progress() does
 * so after progress. Both leave the timer of the link as it is if it fires before: proxied_timed_out() sets it again.
 */
void proxied_set_deadline(struct proxied *proxied);
void proxied_note_progress(struct proxied *proxied);

/* Has the timer of the link fire `left_ms` after now, PROXIED_STALL_MS at most, unless it fires before. */
void proxied_set_timer(struct proxied *proxied, int64_t now_ms, int64_t left_ms);

/* Returns how long the upstream may take now, and writes the limit's name to *limit. */
int64_t proxied_patience_ms(const struct proxied *proxied, const char **limit);

/* Takes a connection; if an address cannot be connected to, tries the next one. fresh: takes no idle connection.
 * failure: the status to answer for earlier addresses if there is no other; 0: none was tried. */
void proxied_use(struct proxied *proxied, bool fresh, int failure);

/* Continues to connect when the socket is writable or, with TLS, readable. */
void proxied_go_on_connecting(struct proxied *proxied);

/* Tries another address. error: the errno for which this one cannot be connected to. */
void proxied_connect_elsewhere(struct proxied *proxied, int error);

/* Sends the request to another address, if it may be repeated; otherwise fails. Called after a connection on which no
 * byte of a response has come. */
void proxied_ask_another(struct proxied *proxied);

/* Sends the request once more on a new connection, since an upstream may close an idle one just when it is used again.
 * Returns false if the connection was not idle before, or the request may not be repeated. */
bool proxied_repeat(struct proxied *proxied);

/* --- proxied_response.c --- */

/* Frees the input, and returns the writer. */
void proxied_drop_response(struct proxied *proxied);

#endif
