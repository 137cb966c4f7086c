/* http1.c - see http1.h. */
#include "bench/httpbench/load/http1.h"

enum { WRITE_PARTS = 64 /* parts of requests, written at a time */ };

static const struct target_bytes *head_of(const struct connections *c, const struct connection_request *p) {
	const struct target *t = &c->plan->target[p->target];
	return p->last ? &t->last : &t->request;
}

/* --- sending --- */

/* Adds bytes to the parts, without the first skip bytes, which have been handed over. Returns how many parts it added.
 */
static int add_part(struct iovec *part, const char *at, size_t length, size_t skip) {
	if (skip >= length) return 0;
	*part = (struct iovec){.iov_base = (char *)at + skip, .iov_len = length - skip};
	return 1;
}

/* Notes that the kernel has accepted n bytes. */
static void written(struct connections *c, struct connection *conn, size_t n) {
	while (n) {
		struct connection_request *p = connection_at(c, conn, conn->unsent);
		const size_t rest = head_of(c, p)->length + c->plan->content.length - p->partly;
		const size_t part = n < rest ? n : rest;
		connection_sending(c, p);
		p->partly += (uint32_t)part;
		n -= part;
		if (part == rest) connection_sent(c, conn, p);
	}
}

int http1_write(struct connections *c, struct connection *conn) {
	const struct target_bytes *content = &c->plan->content;
	while (conn->unsent != CONNECTION_NONE) {
		struct iovec part[WRITE_PARTS];
		int parts = 0;
		for (const struct connection_request *p = connection_at(c, conn, conn->unsent); p && parts < WRITE_PARTS - 1;
			 p = connection_at(c, conn, p->next)) {
			const struct target_bytes *head = head_of(c, p);
			parts += add_part(&part[parts], head->at, head->length, p->partly);
			const size_t skip = p->partly > head->length ? p->partly - head->length : 0;
			parts += add_part(&part[parts], content->at, content->length, skip);
		}
		const ssize_t n = connection_trywritev(c, conn, part, parts);
		if (n == -1) return -1;
		written(c, conn, (size_t)n);
	}
	return 0;
}

/* --- receiving --- */

/* Ends the first request. Returns false if the connection was closed. */
static bool complete(struct connections *c, struct connection *conn, struct connection_request *p) {
	const bool ends = p->response.close || !p->sent; /* else its rest would be taken for the next request */
	connection_answered(c, conn, p);
	if (!ends && !(conn->retired && !conn->assigned)) return true;
	while (conn->assigned) connection_give_back(c, conn, connection_at(c, conn, conn->head));
	connection_close(c, conn);
	return false;
}

static bool fail(struct connections *c, struct connection *conn) {
	connection_fail(c, conn, FAILURE_PROTOCOL);
	return false;
}

static bool take(struct connections *c, struct connection *conn, const char *data, size_t length) {
	while (length) {
		struct connection_request *p = connection_at(c, conn, conn->head);
		/* a response without a request, such as 408 before the server closes an idle connection */
		if (!p || !p->sent_ns) return fail(c, conn);
		if (!p->first_ns) p->first_ns = c->now_ns;
		const bool head = !p->response.status;
		const int n = head ? response_head(&p->response, data, length, c->plan->target[p->target].bodiless)
						   : response_content(&p->response, data, length, &c->plan->expected);
		if (head && n == 0) {
			connection_keep(conn, data, length);
			return true;
		}
		if (n == -1) return fail(c, conn);
		if (head && !p->response.status) p->first_ns = 0; /* an interim response does not count */
		data += n;
		length -= (size_t)n;
		if (!response_complete(&p->response)) continue;
		const struct connection_request *next = connection_at(c, conn, p->next);
		if (length && !(next && next->sent_ns)) return fail(c, conn); /* more than was requested */
		if (!complete(c, conn, p)) return false;
	}
	return true;
}

static void end_of_input(struct connections *c, struct connection *conn) {
	struct connection_request *p = connection_at(c, conn, conn->head);
	if (!p || !response_ends_by_close(&p->response)) {
		connection_fail(c, conn, FAILURE_SHORT);
		return;
	}
	p->response.close = true;
	(void)complete(c, conn, p);
}

const struct connection_protocol http1 = {.send = http1_write, .take = take, .end_of_input = end_of_input};
