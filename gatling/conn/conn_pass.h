/* conn_pass.h - a request of HTTP/1.1 that is passed on to an upstream: content goes both ways, between a connection
 * and a passage (upstream/passage.h). */
#ifndef GATLING_CONN_CONN_PASS_H
#define GATLING_CONN_CONN_PASS_H

#include "gatling/conn/conn_state.h"
#include "gatling/conn/http1_response.h"

enum conn_pass_result {
	CONN_PASS_WAITS,     /* for the client or the upstream */
	CONN_PASS_DONE,      /* the response has been sent */
	CONN_PASS_FAILED,    /* nothing has been answered yet: conn_pass_end() returns the request */
	CONN_PASS_MALFORMED, /* nothing has been answered yet, and the content of the request is no such: 400 */
	CONN_PASS_BROKEN     /* the connection can only be closed */
};

/* Begins. Takes the request over if it has waited for a job. response: that of answer(). false: ENOMEM. */
bool conn_pass_begin(struct conn *conn, const struct request *request, const struct response *response,
					 enum persistence persistence);

/* Moves what there is: content of the request off run->input, and of the response to the client. */
enum conn_pass_result conn_pass_go_on(struct conn *conn, struct conn_run *run);

/* Returns whether much content of the request comes, which can go straight to the upstream. conn_pass_draw() then moves
 * some, in place of conn_read(): *run has what the upstream did not take. Returns false: the client has gone. */
bool conn_pass_draws(const struct conn *conn);
bool conn_pass_draw(struct conn *conn, struct conn_run *run);

/* Ends it. Logs what has been answered; if nothing has been, returns the request, which is to be answered, or freed. */
struct kept_request *conn_pass_end(struct conn *conn);

#endif
