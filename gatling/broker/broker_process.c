/* broker_process.c - see broker_channel.h: what the process that opens files does, and the one that connects to unix
 * sockets: the places of one are all for sockets, or none is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gatling/base/clock.h"
#include "gatling/base/file_read.h"
#include "gatling/base/file_version.h"
#include "gatling/base/notice.h"
#include "gatling/broker/broker.h"
#include "gatling/broker/broker_channel.h"
#include "gatling/sandbox/sandbox.h"
#include "io/io.h"

const char *broker_socket_name(const struct broker_place *p, const char *path) {
	const char *name = broker_of_sockets(p->rule) ? broker_name_in(p->path, path) : NULL;
	return name && (p->rule == BROKER_SOCKETS || strcmp(name, p->name) == 0) ? name : NULL;
}

int broker_open_directory(const struct broker_place *p) {
	return open(p->path, (broker_of_directory(p->rule) ? O_RDONLY : PLATFORM_PATH) | O_DIRECTORY | O_CLOEXEC);
}

/* Returns whether a name in a directory may be opened (fnmatch(3)). A '*' matches neither '/' nor a leading '.'. */
static bool name_fits(enum broker_rule rule, const char *name) {
	static const char *const patterns[][2] = {
		[BROKER_PEMS] = {"*.pem"},
		[BROKER_PAIRS] = {"?*/fullchain.pem", "?*/privkey.pem"},
		[BROKER_LOGS] = {"?*.log"},
	};
	for (int i = 0; i < 2 && patterns[rule][i]; i++)
		if (fnmatch(patterns[rule][i], name, FNM_PATHNAME | FNM_PERIOD) == 0) return true;
	return false;
}

static bool name_allowed(const struct broker_place *p, const char *name) {
	switch (p->rule) {
	case BROKER_PEMS:
	case BROKER_LOGS:
	case BROKER_PAIRS: return name_fits(p->rule, name);
	case BROKER_LOG:
	case BROKER_FILE: return strcmp(name, p->name) == 0;
	default: return false;
	}
}

static bool is_allowed(const struct broker_place *p, const struct broker_request *q) {
	switch (q->action) {
	case ACTION_OPEN_LOG: return broker_of_logs(p->rule) && name_allowed(p, q->name);
	case ACTION_READ: return !broker_of_logs(p->rule) && name_allowed(p, q->name);
	case ACTION_STAT: return name_allowed(p, q->name) || (broker_of_directory(p->rule) && strcmp(q->name, ".") == 0);
	case ACTION_LIST: return broker_of_directory(p->rule);
	case ACTION_LOOK: return p->rule == BROKER_PAIRS;
	case ACTION_CONNECT: return broker_socket_name(p, q->name);
	default: return false;
	}
}

/* A name in a place, after a symlink was followed. */
struct resolved {
	char path[PATH_MAX];
	bool nofollow; /* the path must not be a symlink */
	uid_t owner;   /* of the symlink; 0 (root, which is trusted) if the name is not a symlink */
};

/* Resolves a name in a place. In BROKER_PEMS it may be a symlink, which the kernel must not follow: users who may write
 * to the served directory must not choose what this process reads, since it may read more than they. So the symlink
 * must belong to root or to the owner of its target. Returns 0 or an errno. */
static int resolve(const struct broker_place *p, const char *name, struct resolved *r) {
	struct stat before, after;
	r->nofollow = p->rule == BROKER_PEMS || broker_of_logs(p->rule); /* a log must not be a symlink, either */
	r->owner = 0;
	memcpy(r->path, name, strlen(name) + 1);
	if (p->rule != BROKER_PEMS) return 0;
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

/* Checks that the path of a directory still leads to the one that was opened at the start. Returns 0, ESTALE or another
 * errno. */
static int check_place(const struct broker_place *p) {
	struct stat opened, named;
	if (fstat(p->directory, &opened) == -1 || stat(p->path, &named) == -1) return errno;
	return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino ? 0 : ESTALE;
}

/* Fills in *st, and opens the file unless only that is requested. Does not wait for the reader of a pipe. Returns 0 or
 * an errno. */
static int look_up(const struct broker_place *p, const struct broker_request *q, struct stat *st, int *fd) {
	const bool log = broker_of_logs(p->rule);
	struct resolved r;
	int flags = (log ? O_WRONLY | O_APPEND | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int error = log ? check_place(p) : 0;
	if (!error) error = resolve(p, q->name, &r);
	if (error) return error;
	if (q->action == ACTION_STAT) {
		if (fstatat(p->directory, r.path, st, r.nofollow ? AT_SYMLINK_NOFOLLOW : 0) == -1) return errno;
	} else {
		*fd = openat(p->directory, r.path, flags | (r.nofollow ? O_NOFOLLOW : 0), BROKER_LOG_MODE);
		if (*fd == -1 || fstat(*fd, st) == -1) return errno;
		if (p->rule != BROKER_LOG && !S_ISREG(st->st_mode)) return EINVAL; /* one may be a pipe */
	}
	return r.owner == 0 || r.owner == st->st_uid ? 0 : EPERM;
}

/* Returns whether a file is one of broker_refuse(). */
static bool is_refused(const struct broker *o, const struct stat *st) {
	for (unsigned i = 0; i < o->refusals; i++)
		if (o->refused[i].device == st->st_dev && o->refused[i].inode == st->st_ino) return true;
	return false;
}

/* Opens a socket file (O_PATH): the name itself or, if that is a symlink that may be followed, its target. So the file
 * that is checked is the one that is used. Returns 0 or an errno. */
static int open_socket(const struct broker *o, const struct broker_place *p, const char *name, int *fd) {
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
	if (!S_ISSOCK(st.st_mode)) return ENOTSOCK;
	return is_refused(o, &st) ? EDEADLK : 0;
}

/* Connects to a socket by the name that its descriptor has in /proc, the only one that surely stands for it. Returns 0
 * or an errno. */
static int connect_to(const struct broker *o, const struct broker_place *p, const char *path, int *fd) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int socket_fd, error = open_socket(o, p, broker_socket_name(p, path), &socket_fd);
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

static int list_pem(const struct dirent *d) { return name_fits(BROKER_PEMS, d->d_name); }
static int list_visible(const struct dirent *d) { return *d->d_name != '.'; }

/* Returns 0 with *names, to be freed with free(), or an errno. */
static int list_names(const struct broker_place *p, char **names, size_t *length) {
	struct dirent **entry = NULL;
	int count = fchdir(p->directory);
	if (count == 0) count = scandir(".", &entry, p->rule == BROKER_PAIRS ? list_visible : list_pem, alphasort);
	if (count == -1) return errno;
	FILE *out = open_memstream(names, length);
	for (int i = 0; entry && i < count; free(entry[i++]))
		if (out) fwrite(entry[i]->d_name, 1, strlen(entry[i]->d_name) + 1, out);
	free(entry);
	if (!out || fclose(out) != 0) return ENOMEM;
	return *length > BROKER_LIST ? EFBIG : 0;
}

/* Keeps the names that were listed, for look_at_names(). */
static void keep_listed(struct broker_place *place, const char *names, size_t length) {
	free(place->listed);
	place->listed = malloc(length + 1);
	place->listed_length = place->listed ? length : 0;
	if (place->listed && length) memcpy(place->listed, names, length);
}

static struct broker_seen look_at(int directory, const char *name, const char *file) {
	char path[BROKER_NAME];
	struct stat st;
	struct broker_seen seen = {.error = ENAMETOOLONG};
	if ((size_t)snprintf(path, sizeof path, "%s/%s", name, file) < sizeof path)
		seen = fstatat(directory, path, &st, 0) == -1 ? (struct broker_seen){.error = errno} : broker_seen_of(&st);
	seen.name = broker_name_hash(name);
	return seen;
}

/* Looks at both files of at least one and at most BROKER_LOOK names, from the first one on, for about BROKER_LOOK_MS.
 * Returns 0 with *seen, to be freed with free(), or an errno. */
static int look_at_names(const struct broker_place *p, uint32_t first, char **seen, size_t *length) {
	const char *name = p->listed, *const end = name + p->listed_length;
	const int64_t until_ms = clock_ms() + BROKER_LOOK_MS;
	struct broker_seen *all = malloc((size_t)BROKER_LOOK * BROKER_PAIR * sizeof *all);
	size_t n = 0;
	if (!all) return ENOMEM;
	while (name < end && first--) name += strlen(name) + 1;
	for (; name < end && n < (size_t)BROKER_LOOK * BROKER_PAIR && (!n || clock_ms() < until_ms);
		 name += strlen(name) + 1) {
		all[n++] = look_at(p->directory, name, "fullchain.pem");
		all[n++] = look_at(p->directory, name, "privkey.pem");
	}
	*seen = (char *)all;
	*length = n * sizeof *all;
	return 0;
}

/* The answer to a request. */
struct result {
	struct broker_reply reply;
	char *data; /* NULL: none */
	int fd;     /* -1: none */
};

/* Reads a file. Returns 0 with *text, to be freed with free(), or an errno. */
static int read_file(const struct broker_place *p, const struct broker_request *q, char **text, size_t *length) {
	struct stat st;
	int fd = -1, error = look_up(p, q, &st, &fd);
	if (error) {
		if (fd != -1) close(fd);
		return error;
	}
	*text = file_load(fd, BROKER_FILE_MAX, &st);
	if (!*text) return errno;
	*length = (size_t)st.st_size;
	return 0;
}

/* Handles a request that is allowed. Returns 0 or an errno. */
static int act(const struct broker *o, struct broker_place *place, const struct broker_request *q, struct result *r) {
	struct broker_place p = *place;
	size_t length = 0;
	int error;
	if (p.directory == -1 && (p.directory = broker_open_directory(place)) == -1) return errno;
	if (q->action == ACTION_LIST) error = list_names(&p, &r->data, &length);
	else if (q->action == ACTION_LOOK) error = look_at_names(&p, q->first, &r->data, &length);
	else if (q->action == ACTION_READ) error = read_file(&p, q, &r->data, &length);
	else if (q->action == ACTION_CONNECT) error = connect_to(o, &p, q->name, &r->fd);
	else error = look_up(&p, q, &r->reply.st, &r->fd);
	if (!error && q->action == ACTION_LIST && p.rule == BROKER_PAIRS) keep_listed(place, r->data, length);
	if (!error) r->reply.length = (uint32_t)length;
	if (place->directory == -1) close(p.directory);
	return error;
}

static bool reply_to(struct broker *o, struct broker_request *q) {
	struct result r = {.reply.error = EPERM, .fd = -1};
	q->name[BROKER_NAME - 1] = '\0';
	struct broker_place *p = q->place < o->places ? &o->place[q->place] : NULL;
	if (p && is_allowed(p, q)) r.reply.error = act(o, p, q, &r);
	bool sent = broker_send_reply(o->child.channel, &r.reply, r.reply.error ? -1 : r.fd) &&
				broker_send(o->child.channel, r.data, r.reply.length);
	if (r.fd != -1) close(r.fd);
	free(r.data);
	return sent;
}

void broker_serve(struct broker *o, bool sandbox, const struct account *user) {
	int keep[BROKER_PLACES + 1];
	unsigned kept = 0;
	struct broker_request q;
	for (int i = 0; i < o->places; i++)
		if (o->place[i].directory != -1) keep[kept++] = o->place[i].directory;
	keep[kept++] = o->child.channel;
	io_close_others(keep, kept); /* another such process does not end while its channel is open here */
	if (!broker_of_sockets(o->place[0].rule)) {
		sandbox_enter_broker(sandbox);
	} else {
		const char *wrong = sandbox_enter_connector(sandbox, user);
		if (wrong) _exit(notice_cannot("connect to unix sockets as the user who serves", NULL, wrong));
	}
	while (broker_receive(o->child.channel, &q, sizeof q) && reply_to(o, &q)) {}
	_exit(0); /* the server has ended */
}
