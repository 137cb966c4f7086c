/* mounts.c - see mounts.h: /proc/self/mountinfo, see proc_pid_mountinfo(5). */
#include "gatling/files/mounts.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/slice.h"

enum {
	TABLE_MAX = 4 * 1024 * 1024, /* bytes of the table */
	TABLE_ROOM = 64 * 1024,
	PATH_FIELD = 4 /* the mount point, in a line; the type is behind a lone hyphen */
};

struct mounts {
	int fd; /* of the table, or -1 */
	pthread_mutex_t mutex;
	/* guarded by the mutex */
	unsigned changes;
	struct mounts_found found;
	char directory[];
};

/* File systems of this machine, those of the kernel itself, and some of programs on every desktop or container host.
 * Any other may be on another machine. */
static bool is_local(struct slice type) {
	static const char *const local[] = {"autofs",     "bcachefs",    "binfmt_misc", "bpf",        "btrfs",
										"cgroup",     "cgroup2",     "configfs",    "debugfs",    "devpts",
										"devtmpfs",   "efivarfs",    "erofs",       "exfat",      "ext2",
										"ext3",       "ext4",        "f2fs",        "fusectl",    "fuse.gvfsd-fuse",
										"fuse.lxcfs", "fuse.portal", "hfsplus",     "hugetlbfs",  "iso9660",
										"jfs",        "mqueue",      "nfsd",        "nilfs2",     "nsfs",
										"ntfs",       "ntfs3",       "overlay",     "proc",       "pstore",
										"ramfs",      "reiserfs",    "rootfs",      "rpc_pipefs", "securityfs",
										"selinuxfs",  "squashfs",    "sysfs",       "tmpfs",      "tracefs",
										"udf",        "vfat",        "xfs",         "zfs"};
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if (slice_equal(type, slice_of(local[i]))) return true;
	return false;
}

/* Takes the next field of a line. */
static struct slice take_field(struct slice *line) {
	const struct slice field = slice_first(*line, slice_until(*line, ' '));
	slice_drop(line, field.length < line->length ? field.length + 1 : field.length);
	return field;
}

/* Writes a path to out, with \040 and others in it replaced. Returns its end. */
static char *unescape(struct slice field, char *out) {
	for (size_t i = 0; i < field.length; i++) {
		const char *at = field.at + i;
		if (*at == '\\' && i + 3 < field.length) {
			*out++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			i += 3;
		} else {
			*out++ = *at;
		}
	}
	return out;
}

/* Notes what a line says. *end: where text of found ends. */
static void note_line(const struct mounts *m, struct mounts_found *found, struct slice line, char **end) {
	struct slice path = {0}, field;
	for (int i = 0; i <= PATH_FIELD; i++) path = take_field(&line);
	do field = take_field(&line);
	while (line.length && !slice_equal(field, SLICE("-")));
	const struct slice type = take_field(&line), root = slice_of(m->directory);
	/* what is mounted on demand counts when it is mounted; what does so, where it is */
	const bool on_demand = slice_equal(type, SLICE("autofs"));
	if (!type.length || (is_local(type) && !on_demand)) return;
	struct slice whole = {.at = *end, .length = (size_t)(unescape(path, *end) - *end)};
	const bool top = root.length == 1;
	if (!slice_starts(whole, root) || whole.length <= root.length || (!top && whole.at[root.length] != '/')) {
		found->any |= !on_demand;
		return;
	}
	found->any = true;
	slice_drop(&whole, top ? 1 : root.length + 1);
	if (found->count == MOUNTS_MAX) return;
	found->path[found->count++] = whole;
	*end += path.length;
}

/* Reads the table. Returns it, malloc'd, or NULL. */
static char *read_table(int fd, size_t *length) {
	size_t room = TABLE_ROOM, have = 0;
	char *text = malloc(room);
	for (ssize_t n = 1; text && n > 0; have += (size_t)n) {
		if (have == room) {
			char *larger = room < TABLE_MAX ? realloc(text, room * 2) : NULL;
			if (!larger) break;
			text = larger;
			room *= 2;
		}
		n = pread(fd, text + have, room - have, (off_t)have);
		if (n < 0) break;
	}
	*length = have;
	return text;
}

/* Without memory what was known before stays. */
static void read_mounts(struct mounts *m) {
	size_t length;
	char *table = read_table(m->fd, &length), *paths = table ? malloc(length + 1) : NULL, *end = paths;
	if (!paths) {
		free(table);
		return;
	}
	struct mounts_found found = {.text = paths};
	for (struct slice rest = {.at = table, .length = length}; rest.length;) {
		const struct slice line = slice_first(rest, slice_until(rest, '\n'));
		note_line(m, &found, line, &end);
		slice_drop(&rest, line.length < rest.length ? line.length + 1 : line.length);
	}
	free(table);
	free(m->found.text);
	m->found = found;
	m->changes++;
}

struct mounts *mounts_open(const char *directory) {
	const size_t length = strlen(directory) + 1;
	struct mounts *m = calloc(1, sizeof *m + length);
	if (!m) return NULL;
	memcpy(m->directory, directory, length);
	pthread_mutex_init(&m->mutex, NULL);
	m->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (m->fd != -1) read_mounts(m);
	return m;
}

void mounts_close(struct mounts *m) {
	if (!m) return;
	if (m->fd != -1) close(m->fd);
	pthread_mutex_destroy(&m->mutex);
	free(m->found.text);
	free(m);
}

int mounts_descriptor(const struct mounts *m) { return m->fd; }

unsigned mounts_update(struct mounts *m) {
	struct pollfd table = {.fd = m->fd, .events = POLLPRI};
	pthread_mutex_lock(&m->mutex);
	if (m->fd != -1 && poll(&table, 1, 0) == 1) read_mounts(m);
	const unsigned changes = m->changes;
	pthread_mutex_unlock(&m->mutex);
	return changes;
}

bool mounts_find(struct mounts *m, struct mounts_found *found) {
	pthread_mutex_lock(&m->mutex);
	size_t length = 0;
	for (unsigned i = 0; i < m->found.count; i++) length += m->found.path[i].length;
	*found = m->found;
	char *at = found->text = malloc(length + 1);
	for (unsigned i = 0; at && i < found->count; i++) {
		found->path[i].at = at;
		at = text_copy(at, m->found.path[i]);
	}
	pthread_mutex_unlock(&m->mutex);
	return found->text;
}
