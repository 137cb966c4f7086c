/* others.c - see others.h. */
#include "bench/others.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/counters.h"
#include "io/io.h"

enum { NAME_MAX_LENGTH = 16, LINE_LENGTH = 1024, INODES_MAX = 1024, TABLE_MAX = 1 << 20 /* of processes */ };
static const unsigned long KERNEL_THREAD = 0x200000; /* PF_KTHREAD */

enum class { CLASS_OTHER, CLASS_OWN, CLASS_SERVER, CLASS_KERNEL };

struct process {
	long pid, parent;
	uint64_t own, ticks; /* ticks: with those of the children that it has waited for */
	enum class class;
	char name[NAME_MAX_LENGTH];
};

struct table {
	struct process *process; /* in the order of their numbers */
	size_t count, room;
};

struct others {
	const char *also;
	struct table before;
	uint64_t all, busy;                   /* ticks of all processors */
	unsigned long long inode[INODES_MAX]; /* of the sockets on which the server listens */
	unsigned inodes;
};

/* --- sockets --- */

static void note_inode(struct others *o, unsigned long long inode) {
	if (inode && o->inodes < INODES_MAX) o->inode[o->inodes++] = inode;
}

/* Notes the sockets in a table of /proc/net that listen on a port, or for UDP, that are bound to it. */
static void find_port(struct others *o, const char *path, unsigned port, unsigned wanted_state) {
	char line[LINE_LENGTH];
	FILE *in = fopen(path, "r");
	while (in && fgets(line, sizeof line, in)) {
		unsigned local, state;
		unsigned long long inode;
		/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
		if (sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*d %*d %llu", &local, &state, &inode) ==
				3 &&
			local == port && state == wanted_state)
			note_inode(o, inode);
	}
	if (in) fclose(in);
}

static void find_path(struct others *o, const char *socket_path) {
	char line[LINE_LENGTH];
	FILE *in = fopen("/proc/net/unix", "r");
	while (in && fgets(line, sizeof line, in)) {
		unsigned long long inode;
		int at = 0;
		line[strcspn(line, "\n")] = '\0';
		/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %llu %n", &inode, &at) == 1 && at &&
			strcmp(line + at, socket_path) == 0)
			note_inode(o, inode);
	}
	if (in) fclose(in);
}

static bool is_of_this_machine(const struct sockaddr *address) {
	struct sockaddr_storage any_port = {.ss_family = address->sa_family};
	socklen_t length = sizeof(struct sockaddr_in);
	if (address->sa_family == AF_INET6) {
		length = sizeof(struct sockaddr_in6);
		((struct sockaddr_in6 *)&any_port)->sin6_addr = ((const struct sockaddr_in6 *)address)->sin6_addr;
	} else {
		((struct sockaddr_in *)&any_port)->sin_addr = ((const struct sockaddr_in *)address)->sin_addr;
	}
	const int fd = socket(address->sa_family, SOCK_DGRAM, 0);
	const bool bound = fd != -1 && bind(fd, (struct sockaddr *)&any_port, length) == 0;
	if (fd != -1) close(fd);
	return bound;
}

/* Returns whether the server is of this machine; notes its sockets. */
static bool find_sockets(struct others *o, const struct sockaddr *server) {
	if (server->sa_family == AF_UNIX) {
		find_path(o, ((const struct sockaddr_un *)server)->sun_path);
		return true;
	}
	if (!is_of_this_machine(server)) return false;
	const unsigned port = ntohs(server->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)server)->sin6_port
															  : ((const struct sockaddr_in *)server)->sin_port);
	enum { LISTENS = 10, UNCONNECTED = 7 }; /* TCP_LISTEN and TCP_CLOSE */
	find_port(o, "/proc/net/tcp", port, LISTENS);
	find_port(o, "/proc/net/tcp6", port, LISTENS);
	find_port(o, "/proc/net/udp", port, UNCONNECTED);
	find_port(o, "/proc/net/udp6", port, UNCONNECTED);
	return true;
}

static bool has_socket(const struct others *o, long pid) {
	char path[320], link[64];
	bool found = false;
	snprintf(path, sizeof path, "/proc/%ld/fd", pid);
	DIR *directory = opendir(path);
	for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
		unsigned long long inode;
		snprintf(path, sizeof path, "/proc/%ld/fd/%s", pid, entry->d_name);
		const ssize_t n = readlink(path, link, sizeof link - 1);
		if (n <= 0) continue;
		link[n] = '\0';
		/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
		if (sscanf(link, "socket:[%llu]", &inode) != 1) continue;
		for (unsigned i = 0; i < o->inodes; i++) found |= o->inode[i] == inode;
	}
	if (directory) closedir(directory);
	return found;
}

/* --- processes --- */

/* Reads what the kernel knows of a process. Returns whether it is there. */
static bool read_process(struct process *p, const char *number) {
	char path[64], line[LINE_LENGTH];
	unsigned long flags;
	unsigned long long user, kernel, children_user, children_kernel;
	snprintf(path, sizeof path, "/proc/%.20s/stat", number);
	FILE *in = fopen(path, "r");
	const bool known = in && fgets(line, sizeof line, in);
	if (in) fclose(in);
	char *name = known ? strchr(line, '(') : NULL, *end = known ? strrchr(line, ')') : NULL; /* it may have both */
	if (!name || !end) return false;
	*end = '\0';
	*p = (struct process){.pid = strtol(number, NULL, 10)};
	snprintf(p->name, sizeof p->name, "%s", name + 1);
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
	if (sscanf(end + 1, " %*c %ld %*d %*d %*d %*d %lu %*u %*u %*u %*u %llu %llu %llu %llu", &p->parent, &flags, &user,
			   &kernel, &children_user, &children_kernel) != 6)
		return false;
	p->own = user + kernel;
	p->ticks = p->own + children_user + children_kernel;
	if (flags & KERNEL_THREAD) p->class = CLASS_KERNEL;
	return true;
}

static int compare_numbers(const void *a, const void *b) {
	const long first = ((const struct process *)a)->pid, second = ((const struct process *)b)->pid;
	return (first > second) - (first < second);
}

static struct process *process_of(const struct table *t, long pid) {
	const struct process wanted = {.pid = pid};
	return bsearch(&wanted, t->process, t->count, sizeof wanted, compare_numbers);
}

static bool is_named(const char *names, const char *name) {
	const size_t length = strlen(name);
	for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strcspn(at, ",") >= length && strncmp(at, name, length) == 0 &&
			(strcspn(at, ",") == length || length == NAME_MAX_LENGTH - 1)) /* the kernel cuts off long names */
			return true;
	return false;
}

/* Says whose each process is. What was known before remains; the children of a process are of the same. */
static void classify(const struct others *o, struct table *t) {
	for (size_t i = 0; i < t->count; i++) {
		struct process *p = &t->process[i];
		const struct process *before = t == &o->before ? NULL : process_of(&o->before, p->pid);
		if (p->class == CLASS_KERNEL) continue;
		if (before) p->class = before->class;
		else if (p->pid == getpid()) p->class = CLASS_OWN;
		else if (is_named(o->also, p->name) || (o->inodes && has_socket(o, p->pid))) p->class = CLASS_SERVER;
	}
	for (bool again = true; again;) { /* a child may have a lower number */
		again = false;
		for (size_t i = 0; i < t->count; i++) {
			const struct process *parent = process_of(t, t->process[i].parent);
			if (t->process[i].class != CLASS_OTHER || !parent || parent->class == CLASS_OTHER ||
				parent->class == CLASS_KERNEL)
				continue;
			t->process[i].class = parent->class;
			again = true;
		}
	}
}

/* Reads all processes. Returns whether there was memory for them. */
static bool read_table(const struct others *o, struct table *t) {
	DIR *directory = opendir("/proc");
	*t = (struct table){0};
	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		if (!isdigit((unsigned char)*entry->d_name)) continue;
		if (t->count == t->room) {
			struct process *more = t->room < TABLE_MAX ? realloc(t->process, (t->room * 2 + 256) * sizeof *more) : NULL;
			if (!more) break;
			t->process = more;
			t->room = t->room * 2 + 256;
		}
		if (read_process(&t->process[t->count], entry->d_name)) t->count++;
	}
	if (directory) closedir(directory);
	if (!t->count) {
		free(t->process);
		*t = (struct table){0};
		return false;
	}
	qsort(t->process, t->count, sizeof *t->process, compare_numbers);
	classify(o, t);
	return true;
}

static uint64_t ticks_of(const struct table *t, enum class class) {
	uint64_t sum = 0;
	for (size_t i = 0; i < t->count; i++)
		if (t->process[i].class == class) sum += t->process[i].ticks;
	return sum;
}

static uint64_t grown(const struct others *o, const struct table *after, enum class class) {
	const uint64_t then = ticks_of(&o->before, class), now = ticks_of(after, class);
	return now > then ? now - then : 0; /* what a process that nobody waits for took is lost */
}

/* Returns the one of the others that took most by itself, or NULL. */
static const struct process *worst(const struct others *o, const struct table *after, uint64_t *ticks) {
	const struct process *found = NULL;
	*ticks = 0;
	for (size_t i = 0; i < after->count; i++) {
		const struct process *p = &after->process[i], *before = process_of(&o->before, p->pid);
		const uint64_t then = before ? before->own : 0, took = p->own > then ? p->own - then : 0;
		if (p->class != CLASS_OTHER || took <= *ticks) continue;
		*ticks = took;
		found = p;
	}
	return found;
}

/* --- all together --- */

static void read_ticks(uint64_t *all, uint64_t *busy) {
	uint64_t tick[COUNTERS_TICKS];
	counters_ticks(tick);
	*all = 0;
	for (int i = 0; i < COUNTERS_TICKS; i++) *all += tick[i];
	*busy = tick[0] + tick[1] + tick[2]; /* user, nice, system; interrupts may be of what is measured */
}

static void free_others(struct others *o) {
	if (o) free(o->before.process);
	free(o);
}

struct others *others_begin(const struct sockaddr *server, const char *also) {
	struct others *o = calloc(1, sizeof *o);
	if (!o) return NULL;
	o->also = also;
	const bool local = server && find_sockets(o, server);
	const bool known = read_table(o, &o->before);
	bool found = !local;
	for (size_t i = 0; known && i < o->before.count; i++) found |= o->before.process[i].class == CLASS_SERVER;
	if (known && found) {
		read_ticks(&o->all, &o->busy);
		return o;
	}
	free_others(o);
	return NULL;
}

bool others_end(struct others *o, char text[OTHERS_TEXT]) {
	struct table after;
	*text = '\0';
	bool took = false;
	if (o && read_table(o, &after)) {
		uint64_t all, busy, most;
		read_ticks(&all, &busy);
		const uint64_t seen = grown(o, &after, CLASS_OTHER);
		const uint64_t named =
			seen + grown(o, &after, CLASS_OWN) + grown(o, &after, CLASS_SERVER) + grown(o, &after, CLASS_KERNEL);
		const uint64_t hidden = busy - o->busy > named ? busy - o->busy - named : 0;
		const double whole = (double)(all - o->all) / 100;
		const struct process *p = worst(o, &after, &most);
		took = seen >= OTHERS_LEAST_TICKS && (double)seen > whole * OTHERS_PERCENT;
		if (took && p)
			snprintf(text, OTHERS_TEXT, "other programs took %.0f %% of the processors, %s (process %ld) %.0f %%",
					 (double)seen / whole, p->name, p->pid, (double)most / whole);
		if (!took && hidden >= OTHERS_LEAST_TICKS && (double)hidden > whole * OTHERS_HIDDEN_PERCENT) {
			took = true;
			snprintf(text, OTHERS_TEXT, "programs that cannot be seen from here took %.0f %% of the processors",
					 (double)hidden / whole);
		}
		free(after.process);
	}
	free_others(o);
	return took;
}
