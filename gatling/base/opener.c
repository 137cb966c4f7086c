/* opener.c - see opener.h. A question is a struct opener_client; what answers it is a struct opener_reply, with a
 * descriptor beside it or bytes behind it. */
#include "gatling/base/opener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "io/io.h"

struct opener_place {
	int directory;
	enum opener_rule rule;
	char *name;
};

struct opener {
	struct opener_place place[OPENER_PLACES];
	int places;
	pid_t process; /* 0: none */
	int channel;
	pthread_mutex_t mutex; /* of the channel */
};

enum question { ASK_OPEN, ASK_STAT, ASK_LIST };

struct opener_client {
	uint8_t question;
	uint8_t place;
	char name[OPENER_NAME];
};

struct opener_reply {
	int error;
	uint32_t length; /* bytes that follow */
};

struct opener *opener_new(void) {
	struct opener *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->channel = -1;
	pthread_mutex_init(&o->mutex, NULL);
	return o;
}

int opener_add(struct opener *o, int directory, enum opener_rule rule, const char *name) {
	char *own = strdup(name ? name : "");
	if (o->places == OPENER_PLACES || !own) {
		close(directory);
		free(own);
		errno = ENOMEM;
		return -1;
	}
	o->place[o->places] = (struct opener_place){.directory = directory, .rule = rule, .name = own};
	return o->places++;
}

/* --- the bytes --- */

static bool write_all(int fd, const void *data, size_t length) {
	for (const char *at = data; length;) {
		ssize_t n = send(fd, at, length, MSG_NOSIGNAL);
		if (n == -1 && errno == EINTR) continue;
		if (n <= 0) return false;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

static bool read_all(int fd, void *data, size_t length) {
	for (char *at = data; length;) {
		ssize_t n = read(fd, at, length);
		if (n == -1 && errno == EINTR) continue;
		if (n <= 0) {
			errno = EPIPE;
			return false;
		}
		at += n;
		length -= (size_t)n;
	}
	return true;
}

union rights {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* Sends what is told, with a descriptor unless that is -1. */
static bool tell(int channel, const struct opener_reply *told, int fd) {
	struct iovec part = {.iov_base = (void *)(uintptr_t)told, .iov_len = sizeof *told};
	union rights rights = {{0}};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd != -1) {
		message.msg_control = rights.room;
		message.msg_controllen = sizeof rights.room;
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	ssize_t n;
	do n = sendmsg(channel, &message, MSG_NOSIGNAL);
	while (n == -1 && errno == EINTR);
	return n == (ssize_t)sizeof *told;
}

/* Receives it; *fd: the descriptor, or -1. */
static bool hear(int channel, struct opener_reply *told, int *fd) {
	struct iovec part = {.iov_base = told, .iov_len = sizeof *told};
	union rights rights;
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = rights.room, .msg_controllen = sizeof rights.room};
	ssize_t n;
	*fd = -1;
	do n = recvmsg(channel, &message, 0);
	while (n == -1 && errno == EINTR);
	if (n != (ssize_t)sizeof *told) {
		errno = EPIPE;
		return false;
	}
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return true;
}

/* --- in the process --- */

static bool ends_with(const char *name, const char *end) {
	size_t n = strlen(name), m = strlen(end);
	return n > m && strcmp(name + n - m, end) == 0;
}

/* Whether that name may be asked for there. */
static bool allowed(const struct opener_place *p, const char *name) {
	size_t n = strlen(p->name);
	const char *slash = strchr(name, '/');
	switch (p->rule) {
	case OPENER_LOG: return strcmp(name, p->name) == 0;
	case OPENER_FILE: return strncmp(name, p->name, n) == 0 && (!name[n] || strcmp(name + n, ".ocsp") == 0);
	case OPENER_PEMS: return *name != '.' && !slash && (ends_with(name, ".pem") || ends_with(name, ".pem.ocsp"));
	case OPENER_PAIRS:
		return *name != '.' && slash && slash != name &&
			   (strcmp(slash, "/fullchain.pem") == 0 || strcmp(slash, "/privkey.pem") == 0 ||
				strcmp(slash, "/fullchain.pem.ocsp") == 0);
	}
	return false;
}

/* A link that is followed. */
struct link {
	bool is;
	uid_t owner;
};

static bool trusted(const struct link *link, const struct stat *target) {
	return !link->is || link->owner == 0 || link->owner == target->st_uid;
}

/* Who may write to the served directory is not to choose what this process, which may read more, reads: a link there
 * has to be root's, or of whom its target is. Where the name leads, by looking at the link itself: *path is the name,
 * if it is no link, or what the link says. 0, or -1 with errno. */
static int resolve(const struct opener_place *p, const char *name, char *path, struct link *link) {
	struct stat before, after;
	link->is = false;
	memcpy(path, name, strlen(name) + 1);
	if (p->rule != OPENER_PEMS) return 0;
	if (fstatat(p->directory, name, &before, AT_SYMLINK_NOFOLLOW) == -1) return -1;
	if (!S_ISLNK(before.st_mode)) return 0;
	ssize_t n = readlinkat(p->directory, name, path, PATH_MAX - 1);
	if (n == -1 || fstatat(p->directory, name, &after, AT_SYMLINK_NOFOLLOW) == -1) return -1;
	path[n] = '\0';
	*link = (struct link){.is = true, .owner = before.st_uid};
	/* the text of a link never changes, and to exchange it for another shows in its times */
	bool same = before.st_ino == after.st_ino && before.st_dev == after.st_dev &&
				before.PLATFORM_CTIME.tv_sec == after.PLATFORM_CTIME.tv_sec &&
				before.PLATFORM_CTIME.tv_nsec == after.PLATFORM_CTIME.tv_nsec;
	if (same) return 0;
	errno = EPERM;
	return -1;
}

static int stat_in(const struct opener_place *p, const char *name, struct stat *st) {
	char path[PATH_MAX];
	struct link link;
	if (resolve(p, name, path, &link) == -1) return -1;
	if (fstatat(p->directory, path, st, p->rule == OPENER_PEMS && !link.is ? AT_SYMLINK_NOFOLLOW : 0) == -1) return -1;
	if (trusted(&link, st)) return 0;
	errno = EPERM;
	return -1;
}

/* The descriptor, or -1 with errno. */
static int open_in(const struct opener_place *p, const char *name) {
	/* does not wait for the reader of a pipe; a link does not choose what is appended to */
	const int append = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	char path[PATH_MAX];
	struct stat st;
	struct link link;
	if (p->rule == OPENER_LOG) return openat(p->directory, name, append, OPENER_LOG_MODE);
	if (resolve(p, name, path, &link) == -1) return -1;
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = openat(p->directory, path, flags | (p->rule == OPENER_PEMS && !link.is ? O_NOFOLLOW : 0));
	if (fd == -1) return -1;
	int error = fstat(fd, &st) == -1 ? errno : !S_ISREG(st.st_mode) ? EINVAL : trusted(&link, &st) ? 0 : EPERM;
	if (!error) return fd;
	close(fd);
	errno = error;
	return -1;
}

static char *list(const struct opener_place *p, size_t *length) {
	int fd = openat(p->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd == -1 ? NULL : fdopendir(fd);
	char *names = NULL;
	FILE *out = stream ? open_memstream(&names, length) : NULL;
	for (const struct dirent *d; out && (d = readdir(stream));)
		if (d->d_name[0] != '.') fwrite(d->d_name, 1, strlen(d->d_name) + 1, out);
	int error = stream ? (out ? 0 : ENOMEM) : errno;
	if (stream) closedir(stream);
	else if (fd != -1) close(fd);
	if (out && fclose(out) != 0) error = ENOMEM;
	if (!error && *length > OPENER_LIST) error = EFBIG;
	if (!error) return names;
	free(names);
	errno = error;
	return NULL;
}

static bool lists(const struct opener_place *p) { return p->rule == OPENER_PEMS || p->rule == OPENER_PAIRS; }

/* Whether that may be asked. */
static bool may_ask(const struct opener_place *p, const struct opener_client *q) {
	if (q->question == ASK_LIST) return lists(p);
	if (q->question == ASK_STAT && strcmp(q->name, ".") == 0) return lists(p);
	return allowed(p, q->name);
}

static bool answer_question(const struct opener *o, struct opener_client *q) {
	struct opener_reply told = {0};
	struct stat st;
	void *bytes = NULL;
	char *names = NULL;
	size_t length = 0;
	int fd = -1;
	q->name[OPENER_NAME - 1] = '\0';
	const struct opener_place *p = q->place < o->places ? &o->place[q->place] : NULL;
	if (!p || !may_ask(p, q)) {
		told.error = EPERM;
	} else if (q->question == ASK_OPEN) {
		if ((fd = open_in(p, q->name)) == -1) told.error = errno;
	} else if (q->question == ASK_STAT) {
		if (stat_in(p, q->name, &st) == -1) told.error = errno;
		bytes = &st;
		length = sizeof st;
	} else {
		if (!(names = list(p, &length))) told.error = errno;
		bytes = names;
	}
	told.length = told.error ? 0 : (uint32_t)length;
	bool sent = tell(o->channel, &told, fd) && (!told.length || write_all(o->channel, bytes, told.length));
	if (fd != -1) close(fd);
	free(names);
	return sent;
}

__attribute__((noreturn)) static void serve(struct opener *o) {
	int keep[OPENER_PLACES + 1];
	unsigned kept = 0;
	struct opener_client q;
	for (int i = 0; i < o->places; i++) keep[kept++] = o->place[i].directory;
	keep[kept++] = o->channel;
	(void)io_private_descriptors(keep, kept);
	platform_keep_reading();
	while (read_all(o->channel, &q, sizeof q) && answer_question(o, &q)) {}
	_exit(0); /* the server has gone */
}

int opener_start(struct opener *o) {
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
	if (o->process == 0) serve(o);
	for (int i = 0; i < o->places; i++) {
		close(o->place[i].directory);
		o->place[i].directory = -1;
	}
	return 0;
}

/* --- in the server --- */

/* Asks; with *bytes malloc'd, of told.length, if some are told. -1 with errno. */
static int ask(struct opener *o, enum question question, int place, const char *name, int *fd, void **bytes,
			   size_t *length) {
	struct opener_client q = {.question = (uint8_t)question, .place = (uint8_t)place};
	struct opener_reply told;
	*fd = -1;
	*bytes = NULL;
	if (strlen(name) >= sizeof q.name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(q.name, name, strlen(name) + 1);
	pthread_mutex_lock(&o->mutex);
	bool heard = write_all(o->channel, &q, sizeof q) && hear(o->channel, &told, fd);
	if (heard && told.length) {
		*bytes = told.length <= OPENER_LIST ? malloc(told.length) : NULL;
		heard = *bytes && read_all(o->channel, *bytes, told.length);
	}
	if (!heard) (void)shutdown(o->channel, SHUT_RDWR); /* what comes next would be taken for something else */
	pthread_mutex_unlock(&o->mutex);
	if (heard && !told.error) {
		*length = told.length;
		return 0;
	}
	errno = heard ? told.error : EPIPE;
	free(*bytes);
	*bytes = NULL;
	return -1;
}

int opener_open(struct opener *o, int place, const char *name) {
	int fd;
	void *bytes;
	size_t length;
	if (ask(o, ASK_OPEN, place, name, &fd, &bytes, &length) == -1) return -1;
	free(bytes);
	if (fd == -1) errno = EMFILE; /* it has been sent, and found no room */
	else (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

int opener_stat(struct opener *o, int place, const char *name, struct stat *st) {
	int fd;
	void *bytes;
	size_t length;
	if (ask(o, ASK_STAT, place, name, &fd, &bytes, &length) == -1) return -1;
	bool whole = bytes && length == sizeof *st;
	if (whole) memcpy(st, bytes, sizeof *st);
	free(bytes);
	if (!whole) errno = EPIPE;
	return whole ? 0 : -1;
}

char *opener_list(struct opener *o, int place, size_t *length) {
	int fd;
	void *bytes;
	if (ask(o, ASK_LIST, place, "", &fd, &bytes, length) == -1) return NULL;
	if (bytes) return bytes;
	*length = 0;
	return calloc(1, 1);
}

void opener_stop(struct opener *o) {
	if (o->channel != -1) close(o->channel);
	o->channel = -1;
	if (o->process) (void)waitpid(o->process, NULL, 0);
	o->process = 0;
}

void opener_free(struct opener *o) {
	if (!o) return;
	opener_stop(o);
	for (int i = 0; i < o->places; i++) {
		if (o->place[i].directory != -1) close(o->place[i].directory);
		free(o->place[i].name);
	}
	pthread_mutex_destroy(&o->mutex);
	free(o);
}
