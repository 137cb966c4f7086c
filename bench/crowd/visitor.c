/* visitor.c - see visitor.h. ask() requests a page or an asset, take() parses the response, and page_end() ends a page.
 */
#include "bench/crowd/visitor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/client/socket.h"
#include "bench/machine.h"

enum {
	HOSTILE_SOURCES = 16, /* addresses that all hostile visitors share */
	HOSTILE_S = 60,       /* how long a hostile visitor stays */
	SLOW_BUFFER = 2048,   /* bytes of the receive buffer of a slow reader */
	SLOW_READ = 256,      /* bytes that a slow reader reads each second */
	SECOND_MS = 1000
};

enum state { STATE_CONNECTING, STATE_ASKING, STATE_THINKING, STATE_HOSTILE };

/* --- the end --- */

static void hang_up(struct visitors *vs, struct visitor *v) {
	io_close(vs->loop, v->fd);
	vs->open--;
	free(v->input);
	v->input = NULL;
	v->input_length = 0;
}

static void vacate(struct visitors *vs, struct visitor *v) {
	v->fd = -1;
	v->next = vs->vacant;
	vs->vacant = (int32_t)(v - vs->visitor);
}

static void leave(struct visitors *vs, struct visitor *v) {
	hang_up(vs, v);
	vacate(vs, v);
}

static bool out_of_patience(const struct visitors *vs, const struct visitor *v) {
	return vs->now_ns - v->due_ns > vs->plan->patience_ns;
}

/* Counts the page. Afterwards the visitor thinks or leaves. */
static void page_end(struct visitors *vs, struct visitor *v, enum outcome outcome) {
	if (outcome != OUTCOME_FAILED && out_of_patience(vs, v)) outcome = OUTCOME_LATE;
	vs->tally->outcome[outcome]++;
	if (outcome == OUTCOME_ANSWERED) histogram_record(&vs->tally->answered, vs->now_ns - v->due_ns);
	if (outcome != OUTCOME_ANSWERED || --v->pages_left == 0) {
		leave(vs, v);
		return;
	}
	v->state = STATE_THINKING;
	v->due_ns = vs->now_ns + vs->plan->think_ns; /* the next page is due, even if the loop is late */
	v->gone = v->response.close;
	if (v->gone) io_dontwantread(vs->loop, v->fd);
	io_timeout(vs->loop, v->fd, (v->due_ns + 999999) / 1000000);
}

__attribute__((format(printf, 3, 4))) static void page_fail(struct visitors *vs, struct visitor *v, const char *format,
															...) {
	va_list arguments;
	va_start(arguments, format);
	if (!*vs->tally->failed) vsnprintf(vs->tally->failed, sizeof vs->tally->failed, format, arguments);
	va_end(arguments);
	page_end(vs, v, OUTCOME_FAILED);
}

/* --- connecting --- */

static void note_limit(struct visitors *vs, const char *what, int error) {
	if (!*vs->tally->limit) snprintf(vs->tally->limit, sizeof vs->tally->limit, "%s: %s", what, strerror(error));
}

/* Makes a socket with the next source address. Returns it, or -1 with errno; call is then the call that failed. */
static int make_socket(struct visitors *vs, struct visitor *v, const char **call) {
	const struct plan *p = &vs->plan->arrivals;
	struct socket_options options = {.sources = &p->sources, .source = vs->source};
	if (v->kind == KIND_SLOW) options.receive_buffer = SLOW_BUFFER;
	if (v->kind != KIND_VISITOR) options.source = vs->hostile++ % HOSTILE_SOURCES;
	else vs->source += p->clients;
	return socket_make(vs->loop, v, vs->plan->url, &options, call);
}

static bool is_own_limit(int error) { return error == EADDRNOTAVAIL || error == ENOBUFS || error == ENOMEM; }

enum begun { BEGUN, BEGUN_REFUSED, BEGUN_NOT };

/* Begins to connect. BEGUN: visitor_write() continues. BEGUN_NOT: a limit of this process; there is no connection. */
static enum begun begin_connecting(struct visitors *vs, struct visitor *v) {
	const char *call;
	const int fd = make_socket(vs, v, &call);
	if (fd == -1) {
		note_limit(vs, call, errno);
		return BEGUN_NOT;
	}
	v->fd = fd;
	v->state = STATE_CONNECTING;
	v->used = v->gone = false;
	v->sent = 0;
	v->response = (struct response){0};
	vs->open++;
	if (socket_connect(fd, vs->plan->url) == 0) return BEGUN;
	if (!is_own_limit(errno)) return BEGUN_REFUSED;
	note_limit(vs, "connect", errno);
	hang_up(vs, v);
	return BEGUN_NOT;
}

/* --- requests --- */

static void set_patience(struct visitors *vs, struct visitor *v) {
	io_timeout(vs->loop, v->fd, (v->due_ns + vs->plan->patience_ns) / 1000000 + 1);
}

static void broken(struct visitors *vs, struct visitor *v);

/* Opens a connection for the visitor's URL. Returns false if this process cannot; the visitor's place is then vacant.
 */
static bool come(struct visitors *vs, struct visitor *v) {
	enum begun begun = begin_connecting(vs, v);
	if (begun == BEGUN_NOT) {
		vacate(vs, v);
		return false;
	}
	set_patience(vs, v);
	if (begun == BEGUN) visitor_write(vs, v);
	else broken(vs, v);
	return true;
}

static void come_again(struct visitors *vs, struct visitor *v) {
	hang_up(vs, v);
	vs->tally->reopened++;
	if (!come(vs, v)) vs->tally->outcome[OUTCOME_FAILED]++;
}

/* Handles a connection that has failed, or that the server has closed too early. As a browser does, a visitor tries
 * again if the connection had been idle, since the server may have closed it before it received the request. */
static void broken(struct visitors *vs, struct visitor *v) {
	if (v->kind != KIND_VISITOR) {
		vs->tally->expelled++;
		leave(vs, v);
	} else if (!v->begun && v->used && !out_of_patience(vs, v)) {
		come_again(vs, v);
	} else {
		page_end(vs, v, v->begun ? OUTCOME_CUT : OUTCOME_REFUSED);
	}
}

/* Sends the rest of the request. */
static void ask(struct visitors *vs, struct visitor *v) {
	const struct target_bytes *request = &vs->plan->url[v->url].request;
	while (v->sent < request->length) {
		ssize_t n = io_trywrite(vs->loop, v->fd, request->at + v->sent, request->length - v->sent);
		if (n == -1 && errno == EAGAIN && io_wantwrite(vs->loop, v->fd) == 0) return;
		if (n == -1) {
			broken(vs, v);
			return;
		}
		v->sent += (uint32_t)n;
	}
	io_dontwantwrite(vs->loop, v->fd);
	if (io_wantread(vs->loop, v->fd) == -1) broken(vs, v);
}

static void ask_for(struct visitors *vs, struct visitor *v, unsigned url) {
	v->url = (uint16_t)url;
	v->sent = 0;
	v->response = (struct response){0};
	v->state = STATE_ASKING;
	ask(vs, v);
}

/* --- hostile visitors --- */

/* A slow reader requests everything at once; the other kind sends half of a request. Bytes that the socket does not
 * take at once are not sent. */
static void annoy(struct visitors *vs, struct visitor *v) {
	const struct crowd_plan *p = vs->plan;
	v->state = STATE_HOSTILE;
	unsigned urls = v->kind == KIND_SLOW ? p->urls : 1;
	for (unsigned i = 0; i < urls; i++) {
		const struct target_bytes *request = &p->url[i].request;
		size_t length = v->kind == KIND_SLOW ? request->length : request->length / 2;
		if (io_trywrite(vs->loop, v->fd, request->at, length) == -1) break;
	}
	io_dontwantwrite(vs->loop, v->fd);
	io_timeout(vs->loop, v->fd, vs->now_ns / 1000000 + SECOND_MS);
}

/* Reads a little, or leaves; called each second. */
static void stay(struct visitors *vs, struct visitor *v) {
	ssize_t n = io_tryread(vs->loop, v->fd, vs->input, SLOW_READ);
	if (n == 0 || (n == -1 && errno != EAGAIN)) broken(vs, v);
	else if (vs->now_ns - v->due_ns > INT64_C(1000000000) * HOSTILE_S) leave(vs, v);
	else io_timeout(vs->loop, v->fd, vs->now_ns / 1000000 + SECOND_MS);
}

/* --- responses --- */

/* Handles a complete response. */
static void answered(struct visitors *vs, struct visitor *v) {
	unsigned status = v->response.status;
	if (status == 503 || status == 429) {
		page_end(vs, v, v->url == 0 ? OUTCOME_REFUSED : OUTCOME_CUT);
	} else if (status / 100 != 2 && status != 304) {
		page_fail(vs, v, "%s: status %u", vs->plan->url[v->url].url, status);
	} else if (v->url + 1U == vs->plan->urls) {
		page_end(vs, v, OUTCOME_ANSWERED);
	} else if (v->response.close) {
		v->url++;
		come_again(vs, v);
	} else {
		ask_for(vs, v, v->url + 1U);
	}
}

static void keep_head(struct visitor *v, const char *data, size_t length) {
	v->input = malloc(length);
	if (!v->input) abort();
	memcpy(v->input, data, length);
	v->input_length = (uint32_t)length;
}

static void take(struct visitors *vs, struct visitor *v, const char *data, size_t length) {
	static const struct response_expected any = {0};
	while (length) {
		bool head = !v->response.status;
		int n = head ? response_head(&v->response, data, length, false)
					 : response_content(&v->response, data, length, &any);
		if (head && n == 0) {
			keep_head(v, data, length);
			return;
		}
		if (n == -1) {
			page_fail(vs, v, "%s: the answer is not HTTP", vs->plan->url[v->url].url);
			return;
		}
		data += n;
		length -= (size_t)n;
		if (!response_complete(&v->response)) continue;
		v->used = true;
		if (length) page_fail(vs, v, "%s: more came than was asked for", vs->plan->url[v->url].url);
		else answered(vs, v);
		return;
	}
}

static void note_gone(struct visitors *vs, struct visitor *v) {
	v->gone = true;
	io_dontwantread(vs->loop, v->fd);
}

/* Handles the end of the server's output. */
static void end_of_input(struct visitors *vs, struct visitor *v) {
	if (response_ends_by_close(&v->response)) {
		v->response.close = true;
		answered(vs, v);
	} else {
		broken(vs, v);
	}
}

/* --- events of the loop --- */

void visitor_write(struct visitors *vs, struct visitor *v) {
	if (v->state == STATE_CONNECTING) {
		if (socket_connected(vs->loop, v->fd) == -1) {
			if (errno != EAGAIN || io_wantwrite(vs->loop, v->fd) == -1) broken(vs, v);
			return;
		}
		if (v->kind != KIND_VISITOR) {
			annoy(vs, v);
			return;
		}
		v->state = STATE_ASKING;
	}
	if (v->state == STATE_ASKING) ask(vs, v);
}

void visitor_read(struct visitors *vs, struct visitor *v) {
	size_t kept = v->input_length;
	if (kept) memcpy(vs->input, v->input, kept);
	ssize_t n = io_tryread(vs->loop, v->fd, vs->input + kept, VISITORS_READ_MAX - kept);
	if (n == -1 && errno == EAGAIN) return;
	vs->now_ns = machine_clock_ns();
	free(v->input);
	v->input = NULL;
	v->input_length = 0;
	if (v->state == STATE_THINKING) { /* the server has closed it, or sends 408 before it does */
		note_gone(vs, v);
		return;
	}
	if (n == -1) {
		broken(vs, v);
		return;
	}
	if (n == 0) {
		end_of_input(vs, v);
		return;
	}
	v->begun = true;
	take(vs, v, vs->input, kept + (size_t)n);
}

void visitor_timeout(struct visitors *vs, struct visitor *v) {
	if (v->state == STATE_HOSTILE) {
		stay(vs, v);
	} else if (v->kind != KIND_VISITOR) {
		broken(vs, v);
	} else if (v->state != STATE_THINKING) {
		page_end(vs, v, OUTCOME_LATE);
	} else {
		vs->tally->pages++;
		v->begun = false;
		v->url = 0;
		if (v->gone) {
			come_again(vs, v);
			return;
		}
		set_patience(vs, v);
		ask_for(vs, v, 0);
	}
}

void visitors_arrive(struct visitors *vs, enum kind kind, int64_t due_ns) {
	vs->now_ns = machine_clock_ns();
	histogram_record(&vs->tally->lateness, vs->now_ns - due_ns);
	vs->tally->arrived++;
	if (vs->vacant == -1) {
		note_limit(vs, "visitors of a thread: more threads (-t) help", EMFILE);
		vs->tally->unmade++;
		return;
	}
	struct visitor *v = &vs->visitor[vs->vacant];
	vs->vacant = v->next;
	*v = (struct visitor){.kind = (uint8_t)kind, .pages_left = (uint16_t)vs->plan->pages, .due_ns = due_ns};
	if (!come(vs, v)) vs->tally->unmade++;
	else vs->tally->pages += kind == KIND_VISITOR;
}

void visitors_leave(struct visitors *vs) {
	for (unsigned i = 0; i < vs->plan->visitors; i++)
		if (vs->visitor[i].fd != -1) leave(vs, &vs->visitor[i]);
}

int visitors_init(struct visitors *vs, const struct crowd_plan *plan, unsigned number) {
	*vs = (struct visitors){.plan = plan, .source = number, .hostile = number, .vacant = -1};
	vs->visitor = calloc(plan->visitors, sizeof *vs->visitor);
	vs->tally = calloc(1, sizeof *vs->tally);
	vs->input = malloc(VISITORS_READ_MAX);
	if (!vs->visitor || !vs->tally || !vs->input) {
		errno = ENOMEM;
		return -1;
	}
	for (unsigned i = plan->visitors; i-- > 0; vs->vacant = (int32_t)i)
		vs->visitor[i] = (struct visitor){.fd = -1, .next = vs->vacant};
	return 0;
}

void visitors_free(struct visitors *vs) {
	free(vs->visitor);
	free(vs->tally);
	free(vs->input);
}
