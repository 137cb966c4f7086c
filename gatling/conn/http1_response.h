/* http1_response.h - turns a response into HTTP/1.1 (RFC 9112). */
#ifndef GATLING_CONN_HTTP1_RESPONSE_H
#define GATLING_CONN_HTTP1_RESPONSE_H

#include "gatling/site/answer.h"
#include "io/iob.h"

enum persistence {
	PERSIST_SILENTLY, /* HTTP/1.1: the default needs no words */
	PERSIST_SAID,     /* HTTP/1.0 */
	PERSIST_NOT
};

/* Appends the response to the batch. Takes its file and source over, also when it fails. server_date is "Server" and
 * "Date" as complete lines. head_only: the answer to a HEAD. *body_length becomes the length of its content. 0, or
 * -1 (ENOMEM): the batch cannot be sent. */
int http1_write(iob *batch, struct response *response, struct slice server_date, bool head_only,
				enum persistence persistence, uint64_t *body_length);

extern const struct slice http1_continue; /* the interim response 100 */

#endif
