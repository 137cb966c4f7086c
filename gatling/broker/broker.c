/* broker.c - see broker.h: the places, and the side of the server. */
#include "gatling/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/broker/broker_channel.h"

struct broker *broker_new(void) {
	struct broker *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->child = CHILD_NONE;
	o->wait_ms = BROKER_WAIT_MS;
	pthread_mutex_init(&o->mutex, NULL);
	return o;
}

/* Returns the first length bytes of path as an absolute path, to be freed with free(), or NULL with errno. */
static char *absolute(const char *path, size_t length) {
	char directory[PATH_MAX] = "", *text;
	if (*path != '/' && !getcwd(directory, sizeof directory)) return NULL;
	if (asprintf(&text, "%s%s%.*s", directory, *directory ? "/" : "", (int)length, path) != -1) return text;
	errno = ENOMEM;
	return NULL;
}

int broker_add(struct broker *o, const char *path, enum broker_rule rule, const char **name) {
	const char *slash = strrchr(path, '/');
	const bool directory = broker_of_directory(rule) || rule == BROKER_SOCKETS || rule == BROKER_LOGS;
	*name = directory ? path + strlen(path) : slash ? slash + 1 : path;
	errno = ENOMEM;
	if (o->places == BROKER_PLACES) return -1;
	struct broker_place p = {.rule = rule, .directory = -1, .name = *name};
	p.path = absolute(path, (size_t)(*name - path));
	if (!p.path) return -1;
	int fd = broker_open_directory(&p);
	if (fd == -1 && !broker_of_sockets(rule)) {
		free(p.path);
		return -1;
	}
	if (rule == BROKER_PEMS || broker_of_logs(rule)) p.directory = fd;
	else if (fd != -1) close(fd);
	o->place[o->places] = p;
	return o->places++;
}

static void close_places(struct broker *o) {
	for (int i = 0; i < o->places; i++) {
		if (o->place[i].directory != -1) close(o->place[i].directory);
		o->place[i].directory = -1;
	}
}

int broker_refuse(struct broker *o, const char *path) {
	struct stat st;
	if (stat(path, &st) == -1) return -1;
	struct broker_refused *more = realloc(o->refused, (o->refusals + 1) * sizeof *more);
	if (!more) return -1;
	o->refused = more;
	o->refused[o->refusals++] = (struct broker_refused){.device = st.st_dev, .inode = st.st_ino};
	return 0;
}

int broker_start(struct broker *o, bool sandbox, const struct account *user) {
	if (!o->places) return 0;
	const int forked = child_fork(&o->child, SOCK_STREAM);
	if (forked == -1) return -1;
	if (forked == 0) broker_serve(o, sandbox, user);
	close_places(o);
	return 0;
}

/* A reply, with the descriptor or the data that came with it. */
struct broker_answer {
	struct broker_reply reply;
	int fd;     /* -1: none */
	char *data; /* NULL: none */
};

/* Receives and drops data for which there is no memory. Returns false if a call has failed. */
static bool drop(int channel, size_t length) {
	char piece[4096];
	for (size_t n; length; length -= n) {
		n = length < sizeof piece ? length : sizeof piece;
		if (!broker_receive(channel, piece, n)) return false;
	}
	return true;
}

/* Receives an answer; a->data is to be freed with free(). Returns false if a call has failed. */
static bool receive(struct broker *o, struct broker_answer *a) {
	*a = (struct broker_answer){.fd = -1};
	if (!broker_receive_reply(o->child.channel, &a->reply, &a->fd)) return false;
	if (!a->reply.length) return true;
	if (a->reply.length > BROKER_LIST) return false;
	a->data = malloc(a->reply.length + (size_t)1);
	if (a->data) {
		a->data[a->reply.length] = '\0';
		return broker_receive(o->child.channel, a->data, a->reply.length);
	}
	a->reply.error = ENOMEM;
	return drop(o->child.channel, a->reply.length);
}

/* Waits up to wait_ms. Returns whether an answer has come or the process has ended, which ends the wait. No signal
 * does. */
static bool has_answered(const struct broker *o, int wait_ms) {
	struct pollfd p = {.fd = o->child.channel, .events = POLLIN};
	return poll(&p, 1, wait_ms) != 0;
}

/* Drops the late answer, if it has come. Returns false if a call has failed. */
static bool catch_up(struct broker *o) {
	struct broker_answer a;
	if (!o->late || !has_answered(o, 0)) return true;
	o->late = false;
	if (!receive(o, &a)) return false;
	if (a.fd != -1) close(a.fd);
	free(a.data);
	return true;
}

static bool connects(const struct broker *o) { return broker_of_sockets(o->place[0].rule); }

/* Returns the name that ps(1) shows. */
static const char *process_name(const struct broker *o) { return connects(o) ? "gatling-connect" : "gatling-broker"; }

/* Sends a request and receives its answer. If that does not come in time, its error is ETIMEDOUT. Returns false if a
 * call has failed. */
static bool exchange(struct broker *o, const struct broker_request *q, struct broker_answer *a) {
	const bool log = q->action == ACTION_OPEN_LOG;
	const int wait_ms = log ? BROKER_WAIT_MS : o->wait_ms;
	if (o->late && log) (void)has_answered(o, BROKER_WAIT_MS); /* it is not opened again */
	if (!catch_up(o)) return false;
	bool sent = !o->late;
	if (sent && !broker_send(o->child.channel, q, sizeof *q)) return false;
	if (sent && has_answered(o, wait_ms)) return receive(o, a);
	a->reply.error = ETIMEDOUT;
	o->late = true;
	if (sent)
		notice_line(LEVEL_ERROR, "the process %s waits for \"%s\" for more than %d s: is that disk there?",
					process_name(o), *q->name ? q->name : o->place[q->place].path, wait_ms / 1000);
	return true;
}

/* Ends the process after a call failed, since the rest of a reply would be taken for the next one. Reports that
 * once. */
static void end(struct broker *o) {
	(void)shutdown(o->child.channel, SHUT_WR);
	if (!o->ended)
		notice_line(LEVEL_ERROR, "the process %s has ended, so %s by this server any more", process_name(o),
					connects(o) ? "unix sockets are not connected to"
								: "changed certificates and a renamed log are not opened");
	o->ended = true;
}

/* Makes a request. Returns 0, or -1 with errno. */
static int make_request(struct broker *o, const struct broker_request *q, struct broker_answer *a) {
	*a = (struct broker_answer){.fd = -1};
	pthread_mutex_lock(&o->mutex);
	bool complete = exchange(o, q, a);
	if (!complete) end(o);
	pthread_mutex_unlock(&o->mutex);
	if (!complete || a->reply.error == ETIMEDOUT) atomic_fetch_add(&o->missed, 1);
	if (complete && !a->reply.error) return 0;
	free(a->data);
	errno = complete ? a->reply.error : EPIPE;
	return -1;
}

/* Makes a request for a name. Returns as make_request(). */
static int request(struct broker *o, enum broker_action action, int place, const char *name, struct broker_answer *a) {
	struct broker_request q = {.action = (uint8_t)action, .place = (uint8_t)place};
	errno = ENAMETOOLONG;
	if (strlen(name) >= sizeof q.name) return -1;
	memcpy(q.name, name, strlen(name) + 1);
	return make_request(o, &q, a);
}

/* Requests the descriptor of a file or a connection. Returns it, or -1 with errno. */
static int get(struct broker *o, enum broker_action action, int place, const char *name) {
	struct broker_answer a;
	if (request(o, action, place, name, &a) == -1) return -1;
	if (a.fd == -1) errno = EMFILE; /* the descriptor was sent, but this process had no room for it */
	else (void)fcntl(a.fd, F_SETFD, FD_CLOEXEC);
	return a.fd;
}

int broker_open_log(struct broker *o, int place, const char *name) { return get(o, ACTION_OPEN_LOG, place, name); }

/* Requests data. Returns it, to be freed with free(), or NULL with errno. */
static char *get_data(struct broker *o, enum broker_action action, int place, const char *name, size_t *length) {
	struct broker_answer a;
	if (request(o, action, place, name, &a) == -1) return NULL;
	*length = a.reply.length;
	return a.data ? a.data : calloc(1, 1);
}

char *broker_read(struct broker *o, int place, const char *name, size_t *length) {
	return get_data(o, ACTION_READ, place, name, length);
}

int broker_connect(struct broker *o, const char *path) {
	for (int i = 0; i < o->places; i++)
		if (broker_socket_name(&o->place[i], path)) return get(o, ACTION_CONNECT, i, path);
	errno = EPERM;
	return -1;
}

int broker_stat(struct broker *o, int place, const char *name, struct stat *st) {
	struct broker_answer a;
	if (request(o, ACTION_STAT, place, name, &a) == -1) return -1;
	*st = a.reply.st;
	return 0;
}

char *broker_list(struct broker *o, int place, size_t *length) { return get_data(o, ACTION_LIST, place, "", length); }

struct broker_seen *broker_look(struct broker *o, int place, unsigned first, size_t *names) {
	const struct broker_request q = {.action = ACTION_LOOK, .place = (uint8_t)place, .first = first};
	struct broker_answer a;
	if (make_request(o, &q, &a) == -1) return NULL;
	*names = a.reply.length / (BROKER_PAIR * sizeof(struct broker_seen));
	return a.data ? (void *)a.data : calloc(1, sizeof(struct broker_seen));
}

void broker_hurry(struct broker *o) { o->wait_ms = BROKER_SHORT_WAIT_MS; }

unsigned broker_missed(struct broker *o) { return atomic_load(&o->missed); }

bool broker_is_late(struct broker *o) {
	if (pthread_mutex_trylock(&o->mutex) != 0) return true;
	if (!catch_up(o)) end(o);
	bool late = o->late;
	pthread_mutex_unlock(&o->mutex);
	return late;
}

int broker_channel(const struct broker *o) { return o->child.channel; }

void broker_stop(struct broker *o) { child_stop(&o->child); }

void broker_free(struct broker *o) {
	if (!o) return;
	broker_stop(o);
	close_places(o);
	for (int i = 0; i < o->places; i++) free(o->place[i].path);
	free(o->refused);
	pthread_mutex_destroy(&o->mutex);
	free(o);
}
