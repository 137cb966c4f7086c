/* status.c - see status.h. */
#include "gatling/status/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/clock.h"
#include "gatling/http/request.h"
#include "gatling/status/kernel.h"
#include "gatling/status/view.h"

enum { SAMPLE_MS = 1000 };

struct client {
	int fd;
	int64_t until_ms;
	char head[STATUS_HEAD_MAX];
	size_t length;
	char *answer; /* NULL: the request has not been read yet */
	size_t size, sent;
};

struct status {
	int listener, wake[2];
	char *about;
	const struct counters *worker[STATUS_WORKERS_MAX];
	unsigned workers;
	struct status_names names;
	struct history history;
	struct kernel_view kernel;
	struct certified_list *certified;
	int64_t started_ms, sample_ms;
	struct client *client[STATUS_CLIENTS_MAX]; /* the oldest first */
	unsigned clients;
	bool paused; /* no client is accepted until the next sample */
	pthread_t thread;
	bool runs;
	pthread_mutex_t mutex; /* guards the members below */
	int socket[STATUS_SOCKETS_MAX];
	unsigned sockets;
	bool ending, handed_over, stop;
};

static void sample(struct status *s) {
	struct counters sum = {0};
	for (unsigned i = 0; i < s->workers; i++) counters_sum(&sum, s->worker[i]);
	pthread_mutex_lock(&s->mutex);
	kernel_read(&s->kernel, s->socket, s->sockets, sum.value);
	pthread_mutex_unlock(&s->mutex);
	history_add(&s->history, clock_ms(), &sum, s->worker);
}

/* --- answers --- */

struct form {
	const char *path, *type;
	void (*write)(FILE *out, const struct status_view *view);
};

static const struct form forms[] = {
	{"/", "text/html; charset=utf-8", view_page},
	{"/json", "application/json", view_json},
	{"/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8", view_openmetrics},
	{"/text", "text/plain; charset=utf-8", view_text},
};

static void put_head(FILE *out, const char *status, const char *type, size_t length) {
	fprintf(
		out,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
		"style-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n%sConnection: "
		"close\r\n\r\n",
		status, type, length, *status == '4' && status[2] == '5' ? "Allow: GET, HEAD\r\n" : "");
}

/* Returns the content of a form, malloc'd, or NULL without memory. */
static char *content_of(struct status *s, const struct form *form, size_t *length) {
	char *text = NULL;
	FILE *out = open_memstream(&text, length);
	if (!out) return NULL;
	pthread_mutex_lock(&s->mutex);
	const struct status_view view = {.about = s->about,
									 .history = &s->history,
									 .worker = s->worker,
									 .workers = s->workers,
									 .up_s = (clock_ms() - s->started_ms) / 1000,
									 .ending = s->ending,
									 .certified = s->certified};
	pthread_mutex_unlock(&s->mutex);
	form->write(out, &view);
	bool failed = ferror(out) != 0;
	if (fclose(out) == 0 && !failed) return text;
	free(text);
	return NULL;
}

static const struct form *form_of(struct slice path) {
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
		if (slice_equal(path, slice_of(forms[i].path))) return &forms[i];
	return NULL;
}

/* Returns the status with which a request is refused, and what to do about it, or NULL. */
static const char *refusal_of(const struct status *s, const struct request *q, const char **advice) {
	switch (status_permission(&s->names, q)) {
	case STATUS_ADMITTED: return q->method == METHOD_GET || q->method == METHOD_HEAD ? NULL : "405 Method Not Allowed";
	case STATUS_CROSS_SITE:
		*advice = "A page of another site leads here. Enter the address of this page instead.\n";
		return "403 Forbidden";
	case STATUS_MISDIRECTED: break;
	}
	*advice = "This page answers to addresses, localhost and the names in the options: ask for its address, or start "
			  "gatling with --status NAME:PORT.\n";
	return "421 Misdirected Request";
}

/* Makes the answer to a request. n: what request_parse() has returned. Returns false without memory. */
static bool make_answer(struct status *s, struct client *c, const struct request *q, int n) {
	const char *advice = "", *refusal = n < 0 ? "400 Bad Request" : refusal_of(s, q, &advice);
	const struct form *form = refusal ? NULL : form_of(q->path);
	const char *status = refusal ? refusal : "404 Not Found";
	size_t length = 0;
	char *content = form ? content_of(s, form, &length) : NULL;
	if (form && !content) return false;
	FILE *out = open_memstream(&c->answer, &c->size);
	if (out && content) {
		put_head(out, "200 OK", form->type, length);
		if (q->method == METHOD_GET) fwrite(content, 1, length, out);
	} else if (out) {
		put_head(out, status, "text/plain", strlen(status) + 1 + strlen(advice));
		if (n <= 0 || q->method != METHOD_HEAD) fprintf(out, "%s\n%s", status, advice);
	}
	free(content);
	return out && fclose(out) == 0;
}

/* --- clients --- */

static void drop_client(struct status *s, unsigned i) {
	struct client *c = s->client[i];
	close(c->fd);
	free(c->answer);
	free(c);
	s->clients--;
	for (; i < s->clients; i++) s->client[i] = s->client[i + 1];
}

static void take_client(struct status *s) {
	int fd = accept(s->listener, NULL, NULL);
	if (fd == -1) {
		s->paused = errno != EAGAIN; /* without descriptors or memory another try would fail, too */
		return;
	}
	int flags = fcntl(fd, F_GETFL);
	struct client *c =
		flags == -1 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1
			? NULL
			: calloc(1, sizeof *c);
	if (!c) {
		close(fd);
		return;
	}
	if (s->clients == STATUS_CLIENTS_MAX) drop_client(s, 0);
	c->fd = fd;
	c->until_ms = clock_ms() + STATUS_CLIENT_MS;
	s->client[s->clients++] = c;
}

/* Reads a request, or writes its answer. Returns false when that is over. */
static bool serve_client(struct status *s, struct client *c) {
	static struct request q; /* large, and of this thread alone */
	while (!c->answer) {
		ssize_t n = recv(c->fd, c->head + c->length, sizeof c->head - c->length, 0);
		if (n <= 0) return n == -1 && (errno == EAGAIN || errno == EINTR);
		c->length += (size_t)n;
		int parsed = request_parse(&q, c->head, c->length);
		if (parsed == 0 && c->length == sizeof c->head) parsed = -431;
		if (parsed && !make_answer(s, c, &q, parsed)) return false;
	}
	while (c->sent < c->size) {
		ssize_t n = send(c->fd, c->answer + c->sent, c->size - c->sent, MSG_NOSIGNAL);
		if (n == -1) return errno == EAGAIN || errno == EINTR;
		c->sent += (size_t)n;
	}
	(void)shutdown(c->fd, SHUT_WR);
	return false;
}

/* --- the thread --- */

/* Does what status_leave_sockets() and status_free() have requested. Returns false if the thread has to end. */
static bool look_at_wishes(struct status *s) {
	char byte[16];
	(void)!read(s->wake[0], byte, sizeof byte);
	pthread_mutex_lock(&s->mutex);
	bool stop = s->stop, handed_over = s->handed_over;
	pthread_mutex_unlock(&s->mutex);
	if (handed_over && s->listener != -1) {
		close(s->listener);
		s->listener = -1;
	}
	return !stop;
}

/* Waits for clients until the next sample. Fills in p: the pipe, the listener, then the clients in their order. */
static void wait_for_clients(const struct status *s, struct pollfd *p) {
	int64_t left = s->sample_ms - clock_ms();
	p[0] = (struct pollfd){.fd = s->wake[0], .events = POLLIN};
	p[1] = (struct pollfd){.fd = s->paused ? -1 : s->listener, .events = POLLIN};
	for (unsigned i = 0; i < s->clients; i++)
		p[2 + i] = (struct pollfd){.fd = s->client[i]->fd, .events = s->client[i]->answer ? POLLOUT : POLLIN};
	if (poll(p, 2 + s->clients, left > 0 ? (int)left : 0) == -1)
		for (unsigned i = 0; i < 2 + s->clients; i++) p[i].revents = 0;
}

static void *status_thread(void *argument) {
	struct status *s = argument;
	struct pollfd p[2 + STATUS_CLIENTS_MAX];
	for (bool goes_on = true; goes_on;) {
		int64_t now_ms = clock_ms();
		if (now_ms >= s->sample_ms) {
			sample(s);
			s->paused = false;
			s->sample_ms += (now_ms - s->sample_ms) / SAMPLE_MS * SAMPLE_MS + SAMPLE_MS;
		}
		wait_for_clients(s, p);
		for (unsigned i = s->clients; i-- > 0;) /* from the end, since clients may be removed */
			if ((p[2 + i].revents && !serve_client(s, s->client[i])) || clock_ms() > s->client[i]->until_ms)
				drop_client(s, i);
		if (p[1].revents) take_client(s);
		if (p[0].revents) goes_on = look_at_wishes(s);
	}
	while (s->clients) drop_client(s, 0);
	return NULL;
}

/* --- for the main thread --- */

static bool is_unix(int listener) {
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	return getsockname(listener, (struct sockaddr *)&address, &length) == 0 && address.ss_family == AF_UNIX;
}

struct status *status_new(int listener, const struct status_names *names) {
	struct status *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->names = *names;
	s->names.any = is_unix(listener);
	s->wake[0] = s->wake[1] = -1;
	s->listener = fcntl(listener, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	pthread_mutex_init(&s->mutex, NULL);
	kernel_open(&s->kernel);
	s->certified = certified_new();
	int flags = s->listener == -1 ? -1 : fcntl(s->listener, F_GETFL);
	if (s->certified && flags != -1 && fcntl(s->listener, F_SETFL, flags | O_NONBLOCK) == 0 && pipe(s->wake) == 0 &&
		fcntl(s->wake[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(s->wake[1], F_SETFD, FD_CLOEXEC) == 0)
		return s;
	int error = errno;
	status_free(s);
	errno = error;
	return NULL;
}

int status_start(struct status *s, const char *about, struct counters *const *worker, unsigned workers,
				 const int *sockets, unsigned count) {
	s->about = strdup(about);
	if (!s->about) return ENOMEM;
	s->workers = workers < STATUS_WORKERS_MAX ? workers : STATUS_WORKERS_MAX;
	for (unsigned i = 0; i < s->workers; i++) s->worker[i] = worker[i];
	if (history_open(&s->history, s->workers) == -1) return ENOMEM;
	s->sockets = count < STATUS_SOCKETS_MAX ? count : STATUS_SOCKETS_MAX;
	memcpy(s->socket, sockets, s->sockets * sizeof *sockets);
	kernel_watch(&s->kernel, s->socket, s->sockets);
	s->started_ms = s->sample_ms = clock_ms();
	int error = pthread_create(&s->thread, NULL, status_thread, s);
	s->runs = !error;
	return error;
}

/* Tells the thread that the server ends, and what to do. */
static void wish(struct status *s, bool handed_over, bool stop) {
	pthread_mutex_lock(&s->mutex);
	s->sockets = 0;
	s->ending = true;
	s->handed_over |= handed_over;
	s->stop |= stop;
	pthread_mutex_unlock(&s->mutex);
	(void)!write(s->wake[1], "", 1);
}

void status_leave_sockets(struct status *s, bool handed_over) {
	if (s) wish(s, handed_over, false);
}

struct certified_list *status_certified(const struct status *s) {
	return s->certified;
}

void status_free(struct status *s) {
	if (!s) return;
	if (s->runs) {
		wish(s, false, true);
		pthread_join(s->thread, NULL);
	}
	const int own[] = {s->listener, s->wake[0], s->wake[1]};
	for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
		if (own[i] != -1) close(own[i]);
	kernel_close(&s->kernel);
	history_close(&s->history);
	pthread_mutex_destroy(&s->mutex);
	certified_free(s->certified);
	free(s->about);
	free(s);
}
