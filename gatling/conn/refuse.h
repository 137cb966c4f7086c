/* refuse.h - refuses connections that have been accepted but cannot be served. */
#ifndef GATLING_CONN_REFUSE_H
#define GATLING_CONN_REFUSE_H

#include "gatling/conn/conn_context.h"

/* Answers with 429 or 503 and closes fd, which nothing has adopted; over TLS, where even an alert would cost more than
 * serving a small file, only closes it. What the client has sent is read once, so that the answer is not lost with it:
 * what comes later resets the connection. */
void refuse_connection(struct conn_context *context, int fd, bool secure, int status);

/* The same, but does not close it. */
void refuse_politely(struct conn_context *context, int fd, bool secure, int status);

#endif
