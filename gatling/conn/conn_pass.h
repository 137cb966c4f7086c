/* conn_pass.h - an HTTP/1.1 request that is passed on to an upstream: moves content, both ways, between a connection
 * and a passage (upstream/passage.h). */
#ifndef GATLING_CONN_CONN_PASS_H
#define GATLING_CONN_CONN_PASS_H

#include "gatling/conn/conn_state.h"
#include "gatling/conn/http1_response.h"

enum conn_pass_result {
	CONN_PASS_WAITS,     /* for the client or the upstream */
	CONN_PASS_DONE,      /* the response has been sent */
	CONN_PASS_FAILED,    /* without a response: conn_pass_end() returns the request, to be answered here */
	CONN_PASS_MALFORMED, /* without a response: the chunks of the request's content are malformed (400) */
	CONN_PASS_BROKEN     /* the connection can only be closed */
};

/* Begins to pass the request on. Takes it over if it has waited for a job. response: as answer() has filled it in.
 * Returns false without memory. */
bool conn_pass_begin(struct conn *conn, const struct request *request, const struct response *response,
					 enum persistence persistence);

/* Moves the content that has come: the request's from run->input, and the response's to the client. */
enum conn_pass_result conn_pass_go_on(struct conn *conn, struct conn_run *run);

/* conn_pass_draws() returns whether much content of the request is coming, which can go straight to the upstream. Then
 * conn_pass_draw() replaces conn_read(): it moves some, and leaves in *run what the upstream did not take. It returns
 * false if the client is gone. */
bool conn_pass_draws(const struct conn *conn);
bool conn_pass_draw(struct conn *conn, struct conn_run *run);

/* Ends the pass. Logs the response; without one, returns the request, which has to be answered or freed. */
struct kept_request *conn_pass_end(struct conn *conn);

#endif
