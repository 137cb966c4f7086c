/* http1_response.c - see http1_response.h. */
#include "gatling/conn/http1_response.h"

#include "gatling/base/owfat.h"
#include "gatling/base/text.h"
#include "gatling/http/field_line.h"
#include "gatling/site/response.h"

enum {
	LINES_ROOM = 512,  /* bytes of the status line, of fields such as Server and Date, and of Connection */
	BODY_COPIED = 2048 /* bytes of a body that is copied: send(2) with one buffer costs less than sendmsg(2) with two */
};

const struct slice http1_continue = SLICE("HTTP/1.1 100 Continue\r\n\r\n");

static struct slice persistence_line(enum persistence persistence) {
	if (persistence == PERSIST_NOT) return SLICE("Connection: close\r\n");
	return persistence == PERSIST_SAID ? SLICE("Connection: keep-alive\r\n") : SLICE("");
}

int http1_write(iob *batch, struct response *r, struct slice common_fields, bool head_only,
				enum persistence persistence, uint64_t *body_length) {
	struct slice copied = head_only ? (struct slice){0} : response_in_memory(r);
	if (copied.length > BODY_COPIED) copied.length = 0;
	char *start = iob_reserve(batch, LINES_ROOM + response_fields_room(r) + copied.length), *at = start;
	size_t fields = 0;
	if (start) {
		at = TEXT_JOIN(at, response_status_line(r->status), common_fields, persistence_line(persistence));
		fields = response_fields(r, at, body_length);
	}
	if (!fields) {
		response_drop(r);
		return -1;
	}
	at = TEXT_JOIN(at + fields, SLICE("\r\n"), copied);
	iob_commit(batch, (size_t)(at - start));
	if (!head_only && !copied.length) return response_content(batch, r);
	if (head_only) *body_length = 0;
	response_drop(r);
	return 0;
}

static char *put_status_line(char *at, int status, struct slice reason) {
	at = text_copy_number(text_copy(at, SLICE("HTTP/1.1 ")), (uint64_t)status);
	*at++ = ' ';
	return TEXT_JOIN(at, reason, SLICE("\r\n"));
}

int http1_write_passed(iob *batch, const struct upstream_response *head, struct slice lines, struct slice common_fields,
					   enum persistence persistence, enum body_framing framing) {
	char *start = iob_reserve(batch, LINES_ROOM + head->reason.length + lines.length), *at = start;
	if (!start) return -1;
	at = put_status_line(at, head->status, head->reason);
	at = TEXT_JOIN(at, common_fields, persistence_line(persistence), lines);
	if (framing == BODY_CHUNKED) at = text_copy(at, SLICE("Transfer-Encoding: chunked\r\n"));
	if (framing == BODY_LENGTH) at = field_line_put_length(at, head->content_length);
	iob_commit(batch, (size_t)(text_copy(at, SLICE("\r\n")) - start));
	return 0;
}

int http1_write_interim(iob *batch, int status, struct slice reason, struct slice lines) {
	char *start = iob_reserve(batch, LINES_ROOM + reason.length + lines.length);
	if (!start) return -1;
	const char *end = TEXT_JOIN(put_status_line(start, status, reason), lines, SLICE("\r\n"));
	iob_commit(batch, (size_t)(end - start));
	return 0;
}

int http1_write_upgrade(iob *batch, struct slice reason, struct slice lines) {
	char *start = iob_reserve(batch, LINES_ROOM + reason.length + lines.length);
	if (!start) return -1;
	const char *end = TEXT_JOIN(put_status_line(start, 101, reason),
								SLICE("Connection: upgrade\r\nUpgrade: websocket\r\n"), lines, SLICE("\r\n"));
	iob_commit(batch, (size_t)(end - start));
	return 0;
}
