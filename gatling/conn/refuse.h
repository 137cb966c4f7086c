/* refuse.h - refuses connections that have been accepted but cannot be served. */
#ifndef GATLING_CONN_REFUSE_H
#define GATLING_CONN_REFUSE_H

#include "gatling/conn/conn_context.h"

/* Answers with 429 or 503 and closes fd, which must not be adopted. With TLS, where even an alert would cost more than
 * serving a small file, only closes it. Reads once from the client, since unread input would reset the connection and
 * lose the answer; input that comes later still does. */
void refuse_connection(struct conn_context *context, int fd, bool secure, int status);

/* Does the same, but does not close fd. */
void refuse_politely(struct conn_context *context, int fd, bool secure, int status);

#endif
