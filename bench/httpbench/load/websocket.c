/* websocket.c - see websocket.h. A session begins with an HTTP/1.1 request to switch protocols; when the server answers
 * 101, the connection is open. From then on the client sends the plan's content, a frame for each request, and
 * sometimes a Pong or a Close. */
#include "bench/httpbench/load/websocket.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/client/frames.h"
#include "bench/httpbench/load/http1.h"

enum {
	NONCE = 16,                                          /* bytes of a key */
	KEY_TEXT = 4 * ((NONCE + 2) / 3) + 1,                /* its length in base64, plus a '\0' */
	ACCEPT_TEXT = 4 * ((SHA_DIGEST_LENGTH + 2) / 3) + 1, /* the length of the answer to a key, the same way */
	CONTROL_SIZE = 2 + 4 + FRAMES_CONTROL_MAX,           /* bytes of a client's control frame */
	SWITCHING_PROTOCOLS = 101
};

enum status { NORMAL = 1000, PROTOCOL_ERROR = 1002 }; /* of a Close (RFC 6455, section 7.4.1) */

struct control {
	uint8_t length, written; /* length 0: there is none to send */
	char frame[CONTROL_SIZE];
};

struct websocket {
	struct frames frames;
	char key[KEY_TEXT];
	char *asks; /* the request; NULL once it has been answered */
	size_t asks_length, asks_written;
	struct control pong, next; /* next waits until pong, which has been written in part, is complete */
};

/* --- the end --- */

/* Sends a Close, unless the kernel does not take it now, or a frame has been written in part. It is not tried again. */
static void say_close(struct connections *c, struct connection *conn, enum status status) {
	const struct websocket *s = conn->session;
	const struct connection_request *p = connection_at(c, conn, conn->unsent);
	const char content[] = {(char)(status >> 8), (char)status};
	char frame[CONTROL_SIZE];
	if (s->asks || s->pong.written || (p && p->partly)) return;
	frames_make(frame, FRAMES_CLOSE, content, sizeof content);
	const struct iovec part = {.iov_base = frame, .iov_len = frames_size(sizeof content)};
	(void)connection_trywritev(c, conn, &part, 1);
}

static void leave(struct connections *c, struct connection *conn) { say_close(c, conn, NORMAL); }

/* Closes a connection because of an error of the server. The first reason is kept. Returns false. */
__attribute__((format(printf, 4, 5))) static bool give_up(struct connections *c, struct connection *conn,
														  enum failure failure, const char *format, ...) {
	char *why = c->filling->websocket_failed;
	if (!*why) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(why, MEASURES_TEXT, format, arguments);
		va_end(arguments);
	}
	if (failure == FAILURE_WEBSOCKET) say_close(c, conn, PROTOCOL_ERROR);
	connection_fail(c, conn, failure);
	return false;
}

static void end_of_input(struct connections *c, struct connection *conn) {
	const struct websocket *s = conn->session;
	if (s->asks) (void)give_up(c, conn, FAILURE_SHORT, "the server closed the connection before it had answered");
	else connection_fail(c, conn, FAILURE_SHORT);
}

/* Handles a Close: requests without an echo fail. */
static bool take_close(struct connections *c, struct connection *conn, const struct frames_event *e) {
	const unsigned status = e->length ? (unsigned)(uint8_t)e->at[0] << 8 | (uint8_t)e->at[1] : 0;
	say_close(c, conn, NORMAL);
	if (conn->assigned && status)
		return give_up(c, conn, FAILURE_SHORT, "the server sent Close, with status %u", status);
	if (conn->assigned) return give_up(c, conn, FAILURE_SHORT, "the server sent Close");
	connection_fail(c, conn, FAILURE_SHORT); /* no request is under way */
	return false;
}

/* --- the upgrade --- */

/* Finds the next field with that name in the lines up to end. Returns the text behind its colon, and its length, or
 * NULL. */
static const char *next_field(const char *line, const char *end, const char *name, size_t *length) {
	const size_t n = strlen(name);
	for (const char *line_end; line < end; line = line_end + 1) {
		line_end = memchr(line, '\n', (size_t)(end - line));
		if (!line_end) return NULL;
		if ((size_t)(line_end - line) <= n || line[n] != ':' || strncasecmp(line, name, n) != 0) continue;
		*length = (size_t)(line_end - line) - n - 1;
		return line + n + 1;
	}
	return NULL;
}

/* Returns whether a field with that name has an element in its list. exact: upper and lower case matter. */
static bool has_element(const char *head, const char *end, const char *name, const char *element, bool exact) {
	static const char around[] = " \t\r,";
	const size_t n = strlen(element);
	size_t length;
	for (const char *at = head; (at = next_field(at, end, name, &length)); at += length) {
		for (size_t from = 0, to; from < length; from = to + 1) {
			for (to = from; to < length && !strchr(around, at[to]);) to++;
			if (to - from == n && strncasecmp(at + from, element, n) == 0 &&
				(!exact || memcmp(at + from, element, n) == 0))
				return true;
		}
	}
	return false;
}

/* Writes the server's answer to a key to text[ACCEPT_TEXT]. */
static void accept_of(const char *key, char *text) {
	static const char uuid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455, section 1.3 */
	unsigned char hash[SHA_DIGEST_LENGTH];
	char both[KEY_TEXT + sizeof uuid];
	const int length = snprintf(both, sizeof both, "%s%s", key, uuid);
	(void)SHA1((const unsigned char *)both, (size_t)length, hash);
	(void)EVP_EncodeBlock((unsigned char *)text, hash, sizeof hash);
}

/* Returns what is wrong with a response 101 (RFC 6455, section 4.1), or NULL. */
static const char *check_answer(const struct websocket *s, const char *head, size_t length) {
	const char *end = head + length;
	char accept[ACCEPT_TEXT];
	size_t ignored;
	accept_of(s->key, accept);
	if (s->asks_written < s->asks_length) return "the server answered before it was asked";
	if (!has_element(head, end, "Upgrade", "websocket", false)) return "the answer has no Upgrade: websocket";
	if (!has_element(head, end, "Connection", "upgrade", false)) return "the answer has no Connection: Upgrade";
	if (!next_field(head, end, "Sec-WebSocket-Accept", &ignored)) return "the answer has no Sec-WebSocket-Accept";
	if (!has_element(head, end, "Sec-WebSocket-Accept", accept, true))
		return "the Sec-WebSocket-Accept of the answer is not that of the key";
	return next_field(head, end, "Sec-WebSocket-Extensions", &ignored)
			   ? "the answer has an extension that was not offered"
			   : NULL;
}

/* Parses the head of the response. Returns how many bytes it used, 0 if it is incomplete, or -1 if the connection has
 * been closed. */
static int take_answer(struct connections *c, struct connection *conn, const char *data, size_t length) {
	struct websocket *s = conn->session;
	struct response answer = {0};
	const int n = response_head(&answer, data, length, true);
	if (n == 0) {
		connection_keep(conn, data, length);
		return 0;
	}
	if (n == -1) {
		(void)give_up(c, conn, FAILURE_PROTOCOL, "the server does not answer with HTTP");
		return -1;
	}
	if (!answer.status) return n; /* an interim response */
	if (answer.status != SWITCHING_PROTOCOLS) {
		c->filling->status[answer.status % MEASURES_STATUSES] += conn->assigned;
		(void)give_up(c, conn, FAILURE_STATUS, "the server answered %u, not 101 (Switching Protocols)", answer.status);
		return -1;
	}
	const char *why = check_answer(s, data, (size_t)n);
	if (why) {
		(void)give_up(c, conn, FAILURE_WEBSOCKET, "%s", why);
		return -1;
	}
	free(s->asks);
	s->asks = NULL;
	connection_upgraded(c, conn);
	return n;
}

/* --- receiving --- */

/* Handles content of a message. more: another message follows at once. */
static bool take_content(struct connections *c, struct connection *conn, const struct frames_event *e, bool more) {
	struct connection_request *p = connection_at(c, conn, conn->head);
	const struct connection_request *next = p ? connection_at(c, conn, p->next) : NULL;
	/* a message that is no echo also fails the one it came with, which can only be done now */
	if (!p || !p->sent_ns || (more && !(next && next->sent_ns)))
		return give_up(c, conn, FAILURE_WEBSOCKET, "a message came that is no echo");
	if (!p->first_ns) p->first_ns = c->now_ns;
	response_compare(&p->response, e->at, e->length, &c->plan->expected);
	if (!e->ends) return true;
	if (!p->sent) return give_up(c, conn, FAILURE_WEBSOCKET, "an echo came before its message was sent");
	p->response.status = SWITCHING_PROTOCOLS; /* the status of the connection's response, which is expected */
	connection_answered(c, conn, p);
	if (!conn->retired || conn->assigned) return true;
	connection_close(c, conn);
	return false;
}

/* Prepares a Pong. If several Pings come before one could be sent, only the last is answered (RFC 6455, section 5.5.3).
 */
static void answer_ping(struct websocket *s, const struct frames_event *e) {
	struct control *pong = s->pong.written ? &s->next : &s->pong;
	frames_make(pong->frame, FRAMES_PONG, e->at, e->length);
	pong->length = (uint8_t)frames_size(e->length);
}

static bool take_frames(struct connections *c, struct connection *conn, const char *data, size_t length) {
	struct websocket *s = conn->session;
	while (length) {
		struct frames_event e;
		const size_t n = frames_take(&s->frames, data, length, &e);
		data += n;
		length -= n;
		if (e.kind == FRAMES_WRONG) return give_up(c, conn, FAILURE_WEBSOCKET, "%s", e.why);
		const bool more = e.ends && length && !(*data & FRAMES_CLOSE); /* the bit of control frames */
		if (e.kind == FRAMES_CONTENT && !take_content(c, conn, &e, more)) return false;
		if (e.kind == FRAMES_CONTROL && e.opcode == FRAMES_CLOSE) return take_close(c, conn, &e);
		if (e.kind == FRAMES_CONTROL && e.opcode == FRAMES_PING) answer_ping(s, &e);
	}
	return true;
}

static bool take(struct connections *c, struct connection *conn, const char *data, size_t length) {
	const struct websocket *s = conn->session;
	while (s->asks && length) {
		const int n = take_answer(c, conn, data, length);
		if (n <= 0) return n == 0;
		data += n;
		length -= (size_t)n;
	}
	return take_frames(c, conn, data, length);
}

/* --- sending --- */

/* Writes bytes. Returns how many; if not all, errno has the reason. */
static size_t write_rest(struct connections *c, struct connection *conn, const char *at, size_t length) {
	size_t written = 0;
	while (written < length) {
		const struct iovec part = {.iov_base = (char *)at + written, .iov_len = length - written};
		const ssize_t n = connection_trywritev(c, conn, &part, 1);
		if (n == -1) break;
		written += (size_t)n;
	}
	return written;
}

/* Returns 0, or -1 with errno. */
static int send_pongs(struct connections *c, struct connection *conn, struct websocket *s) {
	while (s->pong.length) {
		s->pong.written +=
			(uint8_t)write_rest(c, conn, s->pong.frame + s->pong.written, s->pong.length - s->pong.written);
		if (s->pong.written < s->pong.length) return -1;
		s->pong = s->next;
		s->next.length = 0;
	}
	return 0;
}

static int send_frames(struct connections *c, struct connection *conn) {
	struct websocket *s = conn->session;
	if (s->asks) {
		s->asks_written += write_rest(c, conn, s->asks + s->asks_written, s->asks_length - s->asks_written);
		return s->asks_written < s->asks_length ? -1 : 0;
	}
	/* a Pong may only be sent between messages */
	if (s->pong.written && send_pongs(c, conn, s) == -1) return -1;
	return http1_write(c, conn) == -1 ? -1 : send_pongs(c, conn, s);
}

static bool wants_to_send(const struct connection *conn) {
	const struct websocket *s = conn->session;
	return !s->asks && (conn->unsent != CONNECTION_NONE || s->pong.length);
}

/* --- beginning and end --- */

static void session_free(void *session) {
	struct websocket *s = session;
	free(s->asks);
	free(s);
}

static void *session_new(struct connections *c, struct connection *conn) {
	const struct target_bytes *head = &connection_target(c, conn)->upgrade;
	struct websocket *s = calloc(1, sizeof *s);
	unsigned char nonce[NONCE];
	int length = -1;
	if (s && RAND_bytes(nonce, NONCE) == 1) {
		(void)EVP_EncodeBlock((unsigned char *)s->key, nonce, NONCE);
		length = asprintf(&s->asks, "%.*sSec-WebSocket-Key: %s\r\n\r\n", (int)head->length, head->at, s->key);
	}
	if (length > 0) {
		s->asks_length = (size_t)length;
		return s;
	}
	free(s); /* asks is undefined */
	return NULL;
}

const struct connection_protocol websocket = {.upgrades = true,
											  .session_new = session_new,
											  .session_free = session_free,
											  .send = send_frames,
											  .wants_to_send = wants_to_send,
											  .take = take,
											  .end_of_input = end_of_input,
											  .leave = leave};
