/* opener.c - see opener.h. Both sides exchange structs over a socket pair: a request, then a reply that may carry a
 * descriptor, or be followed by the names in a directory. */
#include "gatling/base/opener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/file_version.h"
#include "gatling/base/notice.h"
#include "gatling/sandbox/sandbox.h"
#include "io/io.h"

enum { OPENER_TRIES = 100 };

struct opener_place {
	enum opener_rule rule;
	char *path;       /* of the directory, absolute unless that is of sockets */
	int directory;    /* -1: the path is opened for each request */
	const char *name; /* of the file, if there is one */
};

struct opener {
	struct opener_place place[OPENER_PLACES];
	int places;
	pid_t process; /* 0: none */
	int channel;
	bool ended;            /* the process, without having been told to */
	bool late;             /* it has not answered the last request yet */
	pthread_mutex_t mutex; /* of these three */
};

enum opener_action { ACTION_OPEN, ACTION_STAT, ACTION_LIST, ACTION_CONNECT };

struct opener_request {
	uint8_t action, place;
	char name[OPENER_NAME];
};

struct opener_reply {
	int error;
	uint32_t length; /* bytes of names that follow */
	struct stat st;
};

struct opener *opener_new(void) {
	struct opener *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->channel = -1;
	pthread_mutex_init(&o->mutex, NULL);
	return o;
}

const char *opener_name_in(const char *directory, const char *path) {
	size_t length = strlen(directory);
	while (length && directory[length - 1] == '/') length--;
	if (strncmp(path, directory, length) != 0 || path[length] != '/') return NULL;
	const char *name = path + length + 1;
	return *name && *name != '.' && !strchr(name, '/') ? name : NULL;
}

static bool of_directory(enum opener_rule rule) { return rule == OPENER_PEMS || rule == OPENER_PAIRS; }

static int open_directory(const struct opener_place *p) {
	return open(p->path, (of_directory(p->rule) ? O_RDONLY : PLATFORM_PATH) | O_DIRECTORY | O_CLOEXEC);
}

/* Returns the first bytes of a path as an absolute one, to be freed with free(). NULL with errno. */
static char *absolute(const char *path, size_t length) {
	char directory[PATH_MAX] = "", *text;
	if (*path != '/' && !getcwd(directory, sizeof directory)) return NULL;
	if (asprintf(&text, "%s%s%.*s", directory, *directory ? "/" : "", (int)length, path) != -1) return text;
	errno = ENOMEM;
	return NULL;
}

int opener_add(struct opener *o, const char *path, enum opener_rule rule, const char **name) {
	const char *slash = strrchr(path, '/');
	*name = of_directory(rule) || rule == OPENER_SOCKETS ? path + strlen(path) : slash ? slash + 1 : path;
	errno = ENOMEM;
	if (o->places == OPENER_PLACES) return -1;
	struct opener_place p = {.rule = rule, .directory = -1, .name = *name};
	p.path = rule == OPENER_SOCKETS ? strdup(path) : absolute(path, (size_t)(*name - path));
	if (!p.path) return -1;
	int fd = open_directory(&p);
	if (fd == -1 && rule != OPENER_SOCKETS) {
		free(p.path);
		return -1;
	}
	if (rule == OPENER_PEMS || rule == OPENER_LOG) p.directory = fd;
	else if (fd != -1) close(fd);
	o->place[o->places] = p;
	return o->places++;
}

/* --- the channel --- */

/* Neither side handles signals, so no call is interrupted. Sends or receives all of a message. What fails for want of
 * memory is tried again for a second, since a side that gives up ends both. */
static bool transfer(int fd, struct msghdr *message, bool sends) {
	const struct timespec pause = {.tv_nsec = 10000000};
	struct iovec *left = message->msg_iov;
	for (int tries = 0; tries < OPENER_TRIES; tries++) {
		ssize_t n = sends ? sendmsg(fd, message, MSG_NOSIGNAL) : recvmsg(fd, message, MSG_WAITALL);
		if (n == (ssize_t)left->iov_len) return true;
		if (n == -1 && errno != ENOMEM && errno != ENOBUFS) return false;
		if (n == 0 || (n > 0 && message->msg_control)) return false; /* the other side has ended */
		if (n > 0) *left = (struct iovec){.iov_base = (char *)left->iov_base + n, .iov_len = left->iov_len - (size_t)n};
		else nanosleep(&pause, NULL);
	}
	return false;
}

static bool send_all(int fd, const void *data, size_t length) {
	struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
	return transfer(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, true);
}

static bool receive_all(int fd, void *data, size_t length) {
	struct iovec part = {.iov_base = data, .iov_len = length};
	return transfer(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, false);
}

union rights {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Returns a message of one part with room for a descriptor. */
static struct msghdr message_of(struct iovec *part, union rights *rights) {
	*rights = (union rights){.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	rights->header.cmsg_len = CMSG_LEN(sizeof(int));
	return (struct msghdr){
		.msg_iov = part, .msg_iovlen = 1, .msg_control = rights->room, .msg_controllen = sizeof rights->room};
}

/* Sends a reply, with a descriptor unless that is -1. */
static bool send_reply(int channel, const struct opener_reply *reply, int fd) {
	struct iovec part = {.iov_base = (void *)(uintptr_t)reply, .iov_len = sizeof *reply};
	union rights rights;
	struct msghdr message = message_of(&part, &rights);
	memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
	if (fd == -1) message.msg_controllen = 0;
	return transfer(channel, &message, true);
}

/* Receives a reply. *fd: the descriptor that came with it, or -1. */
static bool receive_reply(int channel, struct opener_reply *reply, int *fd) {
	struct iovec part = {.iov_base = reply, .iov_len = sizeof *reply};
	union rights rights;
	struct msghdr message = message_of(&part, &rights);
	if (!transfer(channel, &message, false)) return false;
	if (CMSG_FIRSTHDR(&message)) memcpy(fd, CMSG_DATA(&rights.header), sizeof *fd);
	return true;
}

/* --- in the process --- */

/* Returns whether a name in a directory may be opened (fnmatch(3)). A '*' matches neither '/' nor a leading '.'. */
static bool name_fits(enum opener_rule rule, const char *name) {
	static const char *const patterns[][3] = {
		[OPENER_PEMS] = {"*.pem", "*.pem.ocsp"},
		[OPENER_PAIRS] = {"?*/fullchain.pem", "?*/privkey.pem", "?*/fullchain.pem.ocsp"},
	};
	for (int i = 0; i < 3 && patterns[rule][i]; i++)
		if (fnmatch(patterns[rule][i], name, FNM_PATHNAME | FNM_PERIOD) == 0) return true;
	return false;
}

static bool name_allowed(const struct opener_place *p, const char *name) {
	if (of_directory(p->rule)) return name_fits(p->rule, name);
	size_t length = strlen(p->name);
	const char *rest = name + length;
	return strncmp(name, p->name, length) == 0 && (!*rest || (p->rule == OPENER_FILE && strcmp(rest, ".ocsp") == 0));
}

static bool is_allowed(const struct opener_place *p, const struct opener_request *q) {
	if (p->rule == OPENER_SOCKETS || q->action == ACTION_CONNECT)
		return p->rule == OPENER_SOCKETS && q->action == ACTION_CONNECT && opener_name_in(p->path, q->name);

	bool whole = q->action == ACTION_LIST || (q->action == ACTION_STAT && strcmp(q->name, ".") == 0);
	return whole ? of_directory(p->rule) : name_allowed(p, q->name);
}

/* A name in a place after a symlink was followed. */
struct resolved {
	char path[PATH_MAX];
	bool nofollow; /* the path must not be a symlink */
	uid_t owner;   /* of the symlink; that of root is trusted, like a name that is none */
};

/* Users who may write to the served directory must not choose what this process reads, which may read more than they:
 * a symlink there must belong to root or to the owner of its target. So it is not the kernel that follows it. Returns 0
 * or an errno. */
static int resolve(const struct opener_place *p, const char *name, struct resolved *r) {
	struct stat before, after;
	r->nofollow = p->rule == OPENER_PEMS || p->rule == OPENER_LOG; /* nor what the log is appended to */
	r->owner = 0;
	memcpy(r->path, name, strlen(name) + 1);
	if (p->rule != OPENER_PEMS) return 0;
	if (fstatat(p->directory, name, &before, AT_SYMLINK_NOFOLLOW) == -1) return errno;
	if (!S_ISLNK(before.st_mode)) return 0;
	ssize_t n = readlinkat(p->directory, name, r->path, PATH_MAX - 1);
	if (n == -1 || fstatat(p->directory, name, &after, AT_SYMLINK_NOFOLLOW) == -1) return errno;
	r->path[n] = '\0';
	r->nofollow = false;
	r->owner = before.st_uid;
	/* the target of a symlink never changes, and replacing the symlink shows in its times */
	struct file_version first = file_version_of(&before), second = file_version_of(&after);
	return file_version_same(&first, &second) ? 0 : EPERM;
}

/* Returns whether the path of a directory leads to the one that was opened at the start: 0, ESTALE or another errno. */
static int check_place(const struct opener_place *p) {
	struct stat opened, named;
	if (fstat(p->directory, &opened) == -1 || stat(p->path, &named) == -1) return errno;
	return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino ? 0 : ESTALE;
}

/* Fills in *st, and opens the file if that is asked for. Returns 0 or an errno. Does not wait for the reader of a pipe.
 */
static int look_up(const struct opener_place *p, const struct opener_request *q, struct stat *st, int *fd) {
	bool log = p->rule == OPENER_LOG;
	struct resolved r;
	int flags = (log ? O_WRONLY | O_APPEND | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int error = log ? check_place(p) : 0;
	if (!error) error = resolve(p, q->name, &r);
	if (error) return error;
	if (q->action == ACTION_STAT) {
		if (fstatat(p->directory, r.path, st, r.nofollow ? AT_SYMLINK_NOFOLLOW : 0) == -1) return errno;
	} else {
		*fd = openat(p->directory, r.path, flags | (r.nofollow ? O_NOFOLLOW : 0), OPENER_LOG_MODE);
		if (*fd == -1 || fstat(*fd, st) == -1) return errno;
		if (!log && !S_ISREG(st->st_mode)) return EINVAL;
	}
	return r.owner == 0 || r.owner == st->st_uid ? 0 : EPERM;
}

/* Opens a name in a place as it is (O_PATH), or what it leads to if that is a symlink that may be followed. So what is
 * checked is what is used. */
static int open_socket(const struct opener_place *p, const char *name, int *fd) {
	char target[PATH_MAX];
	struct stat link, st;
	*fd = openat(p->directory, name, PLATFORM_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (*fd == -1 || fstat(*fd, &link) == -1) return errno;
	st = link;
	if (S_ISLNK(link.st_mode)) {
		ssize_t n = readlinkat(*fd, "", target, sizeof target - 1);
		close(*fd);
		*fd = -1;
		if (n == -1) return errno;
		target[n] = '\0';
		*fd = openat(p->directory, target, PLATFORM_PATH | O_CLOEXEC);
		if (*fd == -1 || fstat(*fd, &st) == -1) return errno;
		if (link.st_uid != 0 && link.st_uid != st.st_uid) return EPERM;
	}
	return S_ISSOCK(st.st_mode) ? 0 : ENOTSOCK;
}

/* Connects to the socket that a descriptor stands for, which has no other name than that in /proc. Returns 0 or an
 * errno. */
static int connect_to(const struct opener_place *p, const char *path, int *fd) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int socket_fd, error = open_socket(p, opener_name_in(p->path, path), &socket_fd);
	if (!error) {
		snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", socket_fd);
		*fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (*fd == -1 || fcntl(*fd, F_SETFL, O_NONBLOCK) == -1 ||
			connect(*fd, (struct sockaddr *)&address, sizeof address) == -1)
			error = errno;
	}
	if (socket_fd != -1) close(socket_fd);
	return error;
}

static int list_pem(const struct dirent *d) { return name_fits(OPENER_PEMS, d->d_name); }
static int list_visible(const struct dirent *d) { return *d->d_name != '.'; }

/* Returns 0 with malloc'd *names, or an errno. */
static int list_names(const struct opener_place *p, char **names, size_t *length) {
	struct dirent **entry = NULL;
	int count = fchdir(p->directory);
	if (count == 0) count = scandir(".", &entry, p->rule == OPENER_PAIRS ? list_visible : list_pem, alphasort);
	if (count == -1) return errno;
	FILE *out = open_memstream(names, length);
	for (int i = 0; entry && i < count; free(entry[i++]))
		if (out) fwrite(entry[i]->d_name, 1, strlen(entry[i]->d_name) + 1, out);
	free(entry);
	if (!out || fclose(out) != 0) return ENOMEM;
	return *length > OPENER_LIST ? EFBIG : 0;
}

/* What is sent for a request. */
struct result {
	struct opener_reply reply;
	char *names; /* or NULL */
	int fd;      /* or -1 */
};

/* Does what an allowed request asks for. Returns 0 or an errno. */
static int act(const struct opener_place *place, const struct opener_request *q, struct result *r) {
	struct opener_place p = *place;
	size_t length = 0;
	int error;
	if (p.directory == -1 && (p.directory = open_directory(place)) == -1) return errno;
	if (q->action == ACTION_LIST) error = list_names(&p, &r->names, &length);
	else if (q->action == ACTION_CONNECT) error = connect_to(&p, q->name, &r->fd);
	else error = look_up(&p, q, &r->reply.st, &r->fd);
	if (!error) r->reply.length = (uint32_t)length;
	if (place->directory == -1) close(p.directory);
	return error;
}

static bool reply_to(const struct opener *o, struct opener_request *q) {
	struct result r = {.reply.error = EPERM, .fd = -1};
	q->name[OPENER_NAME - 1] = '\0';
	const struct opener_place *p = q->place < o->places ? &o->place[q->place] : NULL;
	if (p && is_allowed(p, q)) r.reply.error = act(p, q, &r);
	bool sent =
		send_reply(o->channel, &r.reply, r.reply.error ? -1 : r.fd) && send_all(o->channel, r.names, r.reply.length);
	if (r.fd != -1) close(r.fd);
	free(r.names);
	return sent;
}

__attribute__((noreturn)) static void serve(struct opener *o, bool sandbox) {
	int keep[OPENER_PLACES + 1];
	unsigned kept = 0;
	struct opener_request q;
	bool connects = false;
	for (int i = 0; i < o->places; i++) {
		if (o->place[i].directory != -1) keep[kept++] = o->place[i].directory;
		connects |= o->place[i].rule == OPENER_SOCKETS;
	}
	keep[kept++] = o->channel;
	(void)io_private_descriptors(keep, kept);
	sandbox_enter_opener(sandbox, connects);
	while (receive_all(o->channel, &q, sizeof q) && reply_to(o, &q)) {}
	_exit(0); /* the server has ended */
}

static void close_places(struct opener *o) {
	for (int i = 0; i < o->places; i++) {
		if (o->place[i].directory != -1) close(o->place[i].directory);
		o->place[i].directory = -1;
	}
}

int opener_start(struct opener *o, bool sandbox) {
	int end[2];
	if (!o->places) return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, end) == -1) return -1;
	if (fcntl(end[0], F_SETFD, FD_CLOEXEC) == -1) return -1;
	o->process = fork();
	if (o->process == -1) {
		o->process = 0;
		return -1;
	}
	o->channel = end[o->process == 0];
	close(end[o->process != 0]);
	if (o->process == 0) serve(o, sandbox);
	close_places(o);
	return 0;
}

/* --- in the server --- */

/* A reply with what came with it. */
struct answer {
	struct opener_reply reply;
	int fd;      /* -1: none */
	char *names; /* NULL: none */
};

/* Receives names for which there is no memory. */
static bool drop(int channel, size_t length) {
	char piece[4096];
	for (size_t n; length; length -= n) {
		n = length < sizeof piece ? length : sizeof piece;
		if (!receive_all(channel, piece, n)) return false;
	}
	return true;
}

/* Receives an answer. */
static bool receive(struct opener *o, struct answer *a) {
	*a = (struct answer){.fd = -1};
	if (!receive_reply(o->channel, &a->reply, &a->fd)) return false;
	if (!a->reply.length) return true;
	if (a->reply.length > OPENER_LIST) return false;
	a->names = malloc(a->reply.length);
	if (a->names) return receive_all(o->channel, a->names, a->reply.length);
	a->reply.error = ENOMEM;
	return drop(o->channel, a->reply.length);
}

/* Returns whether an answer has come, or the process has ended. The end of a process, and no signal, ends the wait. */
static bool has_answered(const struct opener *o, int wait_ms) {
	struct pollfd p = {.fd = o->channel, .events = POLLIN};
	return poll(&p, 1, wait_ms) != 0;
}

/* Throws the late answer away if it has come. Returns false if a call has failed. */
static bool catch_up(struct opener *o) {
	struct answer a;
	if (!o->late || !has_answered(o, 0)) return true;
	o->late = false;
	if (!receive(o, &a)) return false;
	if (a.fd != -1) close(a.fd);
	free(a.names);
	return true;
}

/* Returns false if a call has failed; the answer is that of a request which failed if it has not come in time. */
static bool exchange(struct opener *o, const struct opener_request *q, struct answer *a) {
	if (!catch_up(o)) return false;
	bool sent = !o->late;
	if (sent && !send_all(o->channel, q, sizeof *q)) return false;
	if (sent && has_answered(o, OPENER_WAIT_MS)) return receive(o, a);
	a->reply.error = ETIMEDOUT;
	o->late = true;
	if (sent)
		notice_line(LEVEL_ERROR, "a process gatling-opener waits for \"%s\" for more than %d s: is that disk there?",
					q->name, OPENER_WAIT_MS / 1000);
	return true;
}

/* Ends the process after a call failed: what is left of a reply would be taken for the next one. Says so once. */
static void end(struct opener *o) {
	(void)shutdown(o->channel, SHUT_WR);
	const bool connects = o->place[0].rule == OPENER_SOCKETS;
	if (!o->ended)
		notice_line(LEVEL_ERROR, "a process gatling-opener has ended, so %s any more: restart gatling",
					connects ? "unix sockets are not connected to"
							 : "changed certificates and a renamed log are not opened");
	o->ended = true;
}

/* Returns 0, or -1 with errno. */
static int request(struct opener *o, enum opener_action action, int place, const char *name, struct answer *a) {
	struct opener_request q = {.action = (uint8_t)action, .place = (uint8_t)place};
	*a = (struct answer){.fd = -1};
	errno = ENAMETOOLONG;
	if (strlen(name) >= sizeof q.name) return -1;
	memcpy(q.name, name, strlen(name) + 1);
	pthread_mutex_lock(&o->mutex);
	bool complete = exchange(o, &q, a);
	if (!complete) end(o);
	pthread_mutex_unlock(&o->mutex);
	if (complete && !a->reply.error) return 0;
	free(a->names);
	errno = complete ? a->reply.error : EPIPE;
	return -1;
}

/* Has the process open a file, or a connection. */
static int get(struct opener *o, enum opener_action action, int place, const char *name) {
	struct answer a;
	if (request(o, action, place, name, &a) == -1) return -1;
	if (a.fd == -1) errno = EMFILE; /* the descriptor was sent, and found no room here */
	else (void)fcntl(a.fd, F_SETFD, FD_CLOEXEC);
	return a.fd;
}

int opener_open(struct opener *o, int place, const char *name) { return get(o, ACTION_OPEN, place, name); }

int opener_connect(struct opener *o, const char *path) {
	for (int i = 0; i < o->places; i++)
		if (o->place[i].rule == OPENER_SOCKETS && opener_name_in(o->place[i].path, path))
			return get(o, ACTION_CONNECT, i, path);
	errno = EPERM;
	return -1;
}

int opener_stat(struct opener *o, int place, const char *name, struct stat *st) {
	struct answer a;
	if (request(o, ACTION_STAT, place, name, &a) == -1) return -1;
	*st = a.reply.st;
	return 0;
}

char *opener_list(struct opener *o, int place, size_t *length) {
	struct answer a;
	if (request(o, ACTION_LIST, place, "", &a) == -1) return NULL;
	*length = a.reply.length;
	return a.names ? a.names : calloc(1, 1);
}

bool opener_is_late(struct opener *o) {
	pthread_mutex_lock(&o->mutex);
	if (!catch_up(o)) end(o);
	bool late = o->late;
	pthread_mutex_unlock(&o->mutex);
	return late;
}

int opener_channel(const struct opener *o) { return o->channel; }

void opener_stop(struct opener *o) {
	if (o->channel != -1) close(o->channel);
	o->channel = -1;
	if (o->process) (void)waitpid(o->process, NULL, o->late ? WNOHANG : 0);
	o->process = 0;
}

void opener_free(struct opener *o) {
	if (!o) return;
	opener_stop(o);
	close_places(o);
	for (int i = 0; i < o->places; i++) free(o->place[i].path);
	pthread_mutex_destroy(&o->mutex);
	free(o);
}
