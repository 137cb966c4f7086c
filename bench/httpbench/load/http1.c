/* http1.c - see http1.h. */
#include "bench/httpbench/load/http1.h"

enum {
	REQUEST_PARTS = 3,                /* of a request: its head, the fields that end the head, its content */
	WRITE_PARTS = 32 * REQUEST_PARTS, /* written at a time */
};

/* Sets the parts of a request. Returns its length. */
static size_t parts_of(const struct connections *c, const struct connection_request *p,
					   struct target_bytes part[static REQUEST_PARTS]) {
	const struct target *t = &c->plan->target[p->target];
	part[0] = p->last ? t->last : t->request;
	part[1] = c->plan->heads ? c->plan->fields[p->fields] : (struct target_bytes){0};
	part[2] = c->plan->content;
	return part[0].length + part[1].length + part[2].length;
}

/* --- sending --- */

/* Adds what has not been handed over of a request. Returns how many parts it added. */
static int add_request(struct iovec *out, const struct connections *c, const struct connection_request *p) {
	struct target_bytes part[REQUEST_PARTS];
	size_t skip = p->partly;
	int added = 0;
	(void)parts_of(c, p, part);
	for (int i = 0; i < REQUEST_PARTS; i++) {
		const size_t skipped = skip < part[i].length ? skip : part[i].length, left = part[i].length - skipped;
		if (left) out[added++] = (struct iovec){.iov_base = part[i].at + skipped, .iov_len = left};
		skip -= skipped;
	}
	return added;
}

/* Notes that the kernel has accepted n bytes. */
static void written(struct connections *c, struct connection *conn, size_t n) {
	while (n) {
		struct connection_request *p = connection_at(c, conn, conn->unsent);
		struct target_bytes part[REQUEST_PARTS];
		const size_t rest = parts_of(c, p, part) - p->partly, taken = n < rest ? n : rest;
		connection_sending(c, p);
		p->partly += (uint32_t)taken;
		n -= taken;
		if (taken == rest) connection_sent(c, conn, p);
	}
}

int http1_write(struct connections *c, struct connection *conn) {
	while (conn->unsent != CONNECTION_NONE) {
		struct iovec part[WRITE_PARTS];
		int parts = 0;
		for (const struct connection_request *p = connection_at(c, conn, conn->unsent);
			 p && parts <= WRITE_PARTS - REQUEST_PARTS; p = connection_at(c, conn, p->next))
			parts += add_request(&part[parts], c, p);
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
