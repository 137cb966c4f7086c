/* passage_state.h - the inside of a passage, for the files that it consists of: passage_life.c (its beginning and end),
 * passage_response.c (what comes from the upstream), passage_request.c (what goes to it, over which connection). None
 * calls one that is named before it. */
#ifndef GATLING_UPSTREAM_PASSAGE_STATE_H
#define GATLING_UPSTREAM_PASSAGE_STATE_H

#include "gatling/upstream/outgoing.h"
#include "gatling/upstream/passage.h"

/* There may be thousands: the order of the members leaves hardly a gap. */
struct passage {
	struct upstreams *upstreams;
	struct upstream_link *link; /* NULL: it has failed */
	char to[UPSTREAM_TEXT_MAX]; /* the address to which it has led, once it is gone; "": not known */
	struct upstream_target *target;
	struct fcgi_records *records; /* of the response, behind this struct; NULL: it comes as it is */
	struct gzip_writer *gzip;     /* that compresses it, until all of that is taken; NULL: none */
	void (*ready)(void *owner);
	void *owner;
	struct passage_share *share; /* NULL: none */
	uint64_t network;            /* of the client, as in struct upstream_link */
	uint64_t held;               /* bytes of content that have been put */
	enum passage_state state;
	int failure;
	unsigned tried; /* addresses: a bit for each */
	unsigned interims;
	unsigned stalls;      /* see passage_stalls() */
	uint32_t sent;        /* bytes of the request since the deadline was set */
	uint32_t answered_ms; /* until there is a response, the time when it began */
	bool starved;
	bool head_only, upgrades;
	bool gzips;       /* the client wants gzip, and the head of the response has not come */
	bool must_change; /* the protocol: the client takes no other success (RFC 8441, section 5) */
	bool repeatable;  /* it has no content, and may be sent twice: nothing of it is dropped before a response comes */
	bool expects;     /* the client may wait for a 100, and has sent no content */
	bool continues;   /* the client waits for a 100, which a program does not send */
	bool holds;       /* nothing is sent until the length of the content is known, or over PASSAGE_HELD */
	bool complete;    /* all of the request has been put */
	bool shut;        /* the sending side of the connection */
	bool blocked;     /* the socket is full */
	bool unwanted;    /* the upstream takes no more of it: the connection is lost, except for what has come */
	bool upstream_ended; /* it sends nothing more */
	struct outgoing out;
	struct {
		char *bytes;
		size_t at, length, size;
	} in; /* from `at` on: read, but not used up */
	struct upstream_response head;
	char *lines; /* of the head, until it has been taken, then the trailer section; head.lines: its length */
	struct body body;
	struct slice piece; /* of the content, which the owner has */
	int relay_to;       /* a socket that content may go to; -1: none */
	uint64_t relayed;   /* bytes */
};

static inline io_loop *passage_loop(const struct passage *passage) { return upstreams_loop(passage->upstreams); }

/* --- passage_request.c --- */

/* passage_fail() because of what the upstream does. */
void passage_blame(struct passage *passage, int status, const char *what);

/* Reports a line that a program has written; for fcgi_read(). */
void passage_complain(void *passage, struct slice line);

/* Begins the time in which the upstream has to do something. The second, because something has moved. */
void passage_set_deadline(const struct passage *passage);
void passage_note_progress(struct passage *passage);

/* Returns how many bytes of the request have not been sent. */
static inline size_t passage_to_send(const struct passage *passage) { return outgoing_rest(&passage->out).length; }

/* Takes a connection, to another address if one cannot be connected to. fresh: no used one. failure: why there has been
 * no other so far, as what to answer; 0: none was tried. */
void passage_use(struct passage *passage, bool fresh, int failure);

/* Tries another address. error: why this one cannot be connected to. */
void passage_connect_elsewhere(struct passage *passage, int error);

/* After a connection on which no byte of a response has come: sends the request to another address, if it may be
 * repeated, or fails. */
void passage_ask_another(struct passage *passage);

/* Sends the request once more: an upstream may close a connection at the moment when it is used again. Returns false if
 * that cannot be. */
bool passage_repeat(struct passage *passage);

/* --- passage_response.c --- */

/* Free what is held of the response, and of compressing it. */
void passage_free_input(struct passage *passage);
void passage_free_gzip(struct passage *passage);

#endif
