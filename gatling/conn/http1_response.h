/* http1_response.h - writes responses in HTTP/1.1 (RFC 9112). */
#ifndef GATLING_CONN_HTTP1_RESPONSE_H
#define GATLING_CONN_HTTP1_RESPONSE_H

#include "gatling/site/answer/answer.h"
#include "gatling/upstream/upstream_head.h"
#include "io/iob.h"

enum persistence {
	PERSIST_SILENTLY, /* HTTP/1.1: the default, without a field */
	PERSIST_SAID,     /* HTTP/1.0: with a field */
	PERSIST_NOT
};

/* Appends the response to the batch, and takes its file and source over, even if that fails. common_fields: as in
 * conn_context.h. head_only: the response is to a HEAD. *body_length becomes the length of its content. Returns 0, or
 * -1 if memory runs out; then the batch cannot be sent. */
int http1_write(iob *batch, struct response *response, struct slice common_fields, bool head_only,
				enum persistence persistence, uint64_t *body_length);

/* Append the head of a response that is passed on. lines: its field lines. framing: how the client finds its end.
 * Return 0, or -1 if memory runs out. */
int http1_write_passed(iob *batch, const struct upstream_response *head, struct slice lines, struct slice common_fields,
					   enum persistence persistence, enum body_framing framing);
int http1_write_interim(iob *batch, int status, struct slice reason, struct slice lines); /* 1xx, except */
int http1_write_upgrade(iob *batch, struct slice reason, struct slice lines);             /* 101 */

extern const struct slice http1_continue; /* the interim response 100 */

#endif
