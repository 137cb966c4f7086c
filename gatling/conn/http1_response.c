/* http1_response.c - see http1_response.h. */
#include "gatling/conn/http1_response.h"

#include "gatling/base/owfat.h"
#include "gatling/site/response.h"

enum {
	LINES_ROOM = 512,  /* bytes of the status line, of Server, Date and the like, and of Connection */
	BODY_COPIED = 2048 /* bytes of a body behind its head: one buffer to send(2) costs less than two to sendmsg(2) */
};

const struct slice http1_continue = SLICE("HTTP/1.1 100 Continue\r\n\r\n");

static char *put(char *at, struct slice s) {
	memcpy(at, s.at, s.length);
	return at + s.length;
}

int http1_write(iob *batch, struct response *r, struct slice server_date, bool head_only, enum persistence persistence,
				uint64_t *body_length) {
	struct slice copied = head_only ? (struct slice){0} : response_in_memory(r);
	if (copied.length > BODY_COPIED) copied.length = 0;
	char *start = iob_reserve(batch, LINES_ROOM + response_fields_room(r) + copied.length), *at = start;
	size_t fields = 0;
	if (start) {
		at = put(at, response_status_line(r->status));
		at = put(at, server_date);
		if (persistence == PERSIST_NOT) at = put(at, SLICE("Connection: close\r\n"));
		if (persistence == PERSIST_SAID) at = put(at, SLICE("Connection: keep-alive\r\n"));
		fields = response_fields(r, at, body_length);
	}
	if (!fields) {
		response_drop(r);
		return -1;
	}
	at = put(at + fields, SLICE("\r\n"));
	if (copied.length) at = put(at, copied);
	iob_commit(batch, (size_t)(at - start));
	if (!head_only && !copied.length) return response_content(batch, r);
	if (head_only) *body_length = 0;
	response_drop(r);
	return 0;
}
