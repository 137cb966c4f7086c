/* conn_relay.h - HTTP/1.1 as the carrier of a request that is passed on: content from the connection to the exchange,
 * and the response back to the connection. */
#ifndef GATLING_CONN_CONN_RELAY_H
#define GATLING_CONN_CONN_RELAY_H

#include "gatling/conn/conn_state.h"

/* Whether the connection persists after a response, and the field line that says so. */
enum persistence {
	PERSIST_SILENTLY, /* HTTP/1.1: the default, without a field */
	PERSIST_SAID,     /* HTTP/1.0: with a field */
	PERSIST_NOT
};

static const struct slice http1_persistence[] = {
	[PERSIST_SILENTLY] = SLICE(""),
	[PERSIST_SAID] = SLICE("Connection: keep-alive\r\n"),
	[PERSIST_NOT] = SLICE("Connection: close\r\n"),
};

extern const struct carrier conn_carrier;

/* Keeps the exchange in conn->exchange, see exchange_keep(). Returns false without memory. */
bool conn_keep_exchange(struct conn *conn, const struct exchange *exchange, const struct response *response);

/* Begins to move content. persistence: that after the response, if its end can be told. */
void conn_relay_begin(struct conn *conn, enum persistence persistence);

/* Moves the content that has come: the request's from run->input, and the response's to the client. *malformed: the
 * chunks of the request's content are malformed, and nothing has been sent yet. */
enum exchange_relayed conn_relay(struct conn *conn, struct conn_run *run, bool *malformed);

/* CONN_PASS: conn_relay_splices() returns whether much content of the request is coming, which can go straight to the
 * upstream. Then conn_relay_splice() replaces conn_read(): it moves some, and leaves in *run what the upstream did not
 * take. It returns false if the client is gone. */
bool conn_relay_splices(const struct conn *conn);
bool conn_relay_splice(struct conn *conn, struct conn_run *run);

/* Ends the exchange. */
void conn_end_exchange(struct conn *conn);

#endif
