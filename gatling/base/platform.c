/* platform.c - see platform.h. */
#include "gatling/base/platform.h"

#ifdef __linux__
#include <crypt.h>
#include <malloc.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h> /* tcp_info of the C library is shorter */
#include <netinet/in.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>

/* openat2(2) fails with EAGAIN for a path with ".." while another process moves directories */
enum { OPEN_ATTEMPTS = 8, SHUTDOWNS = 3 };

/* These are not in linux/magic.h. */
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e
#define HFSPLUS_MAGIC 0x482b
#define JFS_MAGIC 0x3153464a
#define NTFS3_MAGIC 0x7366746e

enum { BENEATH = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

static int open_resolving(int directory, const char *path, int flags, uint64_t resolve) {
	struct open_how how = {.flags = (unsigned)flags, .resolve = resolve};
	return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int platform_open_beneath(int directory, const char *path, int flags) {
	int fd, attempts = 0;
	do fd = open_resolving(directory, path, flags, BENEATH);
	while (fd == -1 && errno == EAGAIN && ++attempts < OPEN_ATTEMPTS);
	return fd;
}

int platform_open_in_root(int directory, const char *path, int flags) {
	int fd = open_resolving(directory, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	return fd == -1 && (errno == ENOSYS || errno == EINVAL) ? openat(directory, path, flags) : fd;
}

/* resolve: flags of openat2(2) without which the file is opened if the system lacks that call. */
static int open_so(int directory, const char *path, int flags, bool beneath, uint64_t resolve) {
	static atomic_bool cannot; /* the system is older, or a sandbox forbids the call */
	int refused = 0;
	if (!atomic_load_explicit(&cannot, memory_order_relaxed)) {
		int fd = open_resolving(directory, path, flags, resolve | (beneath ? BENEATH : 0));
		if (fd != -1) return fd;
		if (errno == EAGAIN && resolve & RESOLVE_CACHED) errno = EINPROGRESS;
		if (errno != ENOSYS && errno != EINVAL && errno != EPERM) return -1;
		refused = errno;
	}
	int fd = beneath ? platform_open_beneath(directory, path, flags) : openat(directory, path, flags);
	if (refused && (fd != -1 || errno != refused)) atomic_store_explicit(&cannot, true, memory_order_relaxed);
	return fd;
}

int platform_open_at_once(int directory, const char *path, int flags, bool beneath) {
	return open_so(directory, path, flags, beneath, RESOLVE_CACHED);
}

int platform_open_in_mount(int directory, const char *path, int flags, bool beneath, bool at_once) {
	return open_so(directory, path, flags, beneath, RESOLVE_NO_XDEV | (at_once ? RESOLVE_CACHED : 0));
}

int platform_peer_user(int fd, uid_t *user) {
	struct ucred peer;
	socklen_t length = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1) return -1;
	*user = peer.uid;
	return 0;
}

int platform_wait_signal(const sigset_t *signals, int64_t most_ms, int *signal, pid_t *sender) {
	const struct timespec most = {.tv_sec = most_ms / 1000, .tv_nsec = most_ms % 1000 * 1000000};
	siginfo_t info;
	*signal = sigtimedwait(signals, &info, most_ms == -1 ? NULL : &most);
	if (*signal == -1) return -1;
	*sender = info.si_pid;
	return 0;
}

static bool is_one_of(unsigned long type, const unsigned long *list, size_t count) {
	for (size_t i = 0; i < count; i++)
		if (type == list[i]) return true;
	return false;
}

bool platform_lists_all_names(int directory) {
	static const unsigned long local[] = {
		OVERLAYFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC,           F2FS_SUPER_MAGIC, SQUASHFS_MAGIC,  EROFS_SUPER_MAGIC_V1,
		RAMFS_MAGIC,           ZFS_MAGIC,        BCACHEFS_MAGIC};
	struct statfs s;
	return fstatfs(directory, &s) == 0 && is_one_of((unsigned long)s.f_type, local, sizeof local / sizeof *local);
}

bool platform_is_remote(int directory) {
	static const unsigned long local[] = {MSDOS_SUPER_MAGIC, EXFAT_SUPER_MAGIC,    ISOFS_SUPER_MAGIC, UDF_SUPER_MAGIC,
										  NILFS_SUPER_MAGIC, REISERFS_SUPER_MAGIC, HFSPLUS_MAGIC,     JFS_MAGIC,
										  NTFS3_MAGIC,       PROC_SUPER_MAGIC,     SYSFS_MAGIC};
	struct statfs s;
	if (platform_lists_all_names(directory)) return false;
	/* some programs do not answer this */
	return fstatfs(directory, &s) == -1 || !is_one_of((unsigned long)s.f_type, local, sizeof local / sizeof *local);
}

void platform_defer_accept(int fd, int wait_s) {
	/* a failure costs only time */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &wait_s, sizeof wait_s);
}

/* Returns the number in a file of the kernel that follows `skipped` others, or `none` if there is no such number. */
static uint64_t read_number(const char *path, int skipped, uint64_t none) {
	char text[128], *at = text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
	if (fd != -1) close(fd);
	text[n > 0 ? n : 0] = '\0';
	while (skipped-- > 0) (void)strtoull(at, &at, 10);
	at += strspn(at, " \t");
	return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : none;
}

/* Returns the memory limit of the process, or UINT64_MAX: the lowest one of its control group and those above it, which
 * all hold (cgroups(7)). In a container its group may look like the root. */
static uint64_t group_memory(void) {
	char line[1024] = "", path[sizeof line + 64];
	FILE *groups = fopen("/proc/self/cgroup", "re");
	uint64_t least = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", 0, UINT64_MAX); /* version 1 */
	bool found = groups && fgets(line, sizeof line, groups) && strncmp(line, "0::/", 4) == 0;
	if (groups) fclose(groups);
	line[strcspn(line, "\n")] = '\0';
	for (char *end = found ? line : NULL; end; end = strrchr(line, '/')) {
		if (end != line) *end = '\0';
		snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + strlen("0::"));
		uint64_t limit = read_number(path, 0, UINT64_MAX);
		if (limit < least) least = limit;
	}
	return least;
}

/* Returns the memory of the machine, or UINT64_MAX. A sandbox may refuse sysinfo(2), which sysconf(3) does not notice.
 */
static uint64_t machine_memory(void) {
	static const char name[] = "MemTotal:";
	char line[128] = "";
	struct sysinfo info;
	if (sysinfo(&info) == 0) return (uint64_t)info.totalram * info.mem_unit;
	FILE *file = fopen("/proc/meminfo", "re");
	const bool found = file && fgets(line, sizeof line, file) && strncmp(line, name, strlen(name)) == 0;
	if (file) fclose(file);
	return found ? strtoull(line + strlen(name), NULL, 10) * 1024 : UINT64_MAX;
}

struct platform_tcp platform_tcp(void) {
	int64_t pages = (int64_t)read_number("/proc/sys/net/ipv4/tcp_mem", 1, 0);
	return (struct platform_tcp){.memory = pages ? pages * sysconf(_SC_PAGESIZE) : -1,
								 .queue = (int64_t)read_number("/proc/sys/net/core/somaxconn", 0, UINT64_MAX),
								 .syncookies =
									 (int64_t)read_number("/proc/sys/net/ipv4/tcp_syncookies", 0, UINT64_MAX)};
}

void platform_release_memory(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* Fills in *info. Returns whether the kernel knows at least its first `end` bytes. */
static bool tcp_info_of(int fd, struct tcp_info *info, size_t end) {
	socklen_t length = sizeof *info;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0 && length >= end;
}

int64_t platform_transferred(int fd) {
	struct tcp_info info;
	size_t end = offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
	return tcp_info_of(fd, &info, end) ? (int64_t)(info.tcpi_bytes_acked + info.tcpi_bytes_received) : -1;
}

uint64_t platform_socket_memory(int fd, uint64_t *unsent) {
	uint32_t of[SK_MEMINFO_VARS] = {0};
	socklen_t length = sizeof of;
	*unsent = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, of, &length) == -1) return 0;
	const int32_t ahead = (int32_t)of[SK_MEMINFO_FWD_ALLOC];
	*unsent = of[SK_MEMINFO_WMEM_QUEUED];
	return (uint64_t)of[SK_MEMINFO_RMEM_ALLOC] + of[SK_MEMINFO_WMEM_QUEUED] + (uint64_t)(ahead > 0 ? ahead : 0);
}

int64_t platform_listen_drops(int fd) {
	uint32_t of[SK_MEMINFO_VARS] = {0};
	socklen_t length = sizeof of;
	const bool told = getsockopt(fd, SOL_SOCKET, SO_MEMINFO, of, &length) == 0 && length == sizeof of;
	return told ? (int64_t)of[SK_MEMINFO_DROPS] : -1;
}

int64_t platform_waited_ms(int fd, bool *ended) {
	enum { ESTABLISHED = 1 }; /* TCP_ESTABLISHED of the C library's netinet/tcp.h */
	struct tcp_info info;
	if (!tcp_info_of(fd, &info, 0)) return -1;
	if (ended) *ended = info.tcpi_state != ESTABLISHED;
	return (int64_t)info.tcpi_last_data_recv;
}

int64_t platform_queue(int fd, int64_t *most) {
	struct tcp_info info;
	if (!tcp_info_of(fd, &info, 0)) return -1;
	if (most) *most = (int64_t)info.tcpi_sacked; /* ss(8) reads the queue and its limit from the same members */
	return (int64_t)info.tcpi_unacked;
}

/* shutdown(2) fails if another process has just done the same, so that the socket does not listen. Then it leaves a
 * mark that later connections would inherit; the next shutdown(2), after a listen(2), removes it. */
int platform_stop_listening(int fd, int backlog) {
	for (int i = 0; i < SHUTDOWNS; i++) {
		if (shutdown(fd, SHUT_RD) == 0) return 0;
		if (listen(fd, backlog) == -1) return -1;
	}
	return -1;
}

bool platform_has_ktls(void) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1) return false;
	/* a kernel that knows kTLS fails with ENOTCONN */
	bool has = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", strlen("tls")) == 0 || errno == ENOTCONN;
	close(fd);
	return has;
}

#else
#include <sys/param.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/time.h>

bool platform_has_ktls(void) { return false; }

int platform_open_beneath(int directory, const char *path, int flags) {
#ifdef O_RESOLVE_BENEATH
	int fd = openat(directory, path, flags | O_RESOLVE_BENEATH);
#ifdef ENOTCAPABLE
	if (fd == -1 && errno == ENOTCAPABLE) errno = EXDEV;
#endif
	return fd;
#else
	(void)directory, (void)path, (void)flags;
	errno = ENOSYS;
	return -1;
#endif
}

int platform_open_in_root(int directory, const char *path, int flags) { return openat(directory, path, flags); }

int platform_open_at_once(int directory, const char *path, int flags, bool beneath) {
	return beneath ? platform_open_beneath(directory, path, flags) : openat(directory, path, flags);
}

/* Not all of these systems have sigtimedwait(2). */
int platform_wait_signal(const sigset_t *signals, int64_t most_ms, int *signal, pid_t *sender) {
	struct itimerval timer = {.it_value = {.tv_sec = most_ms / 1000, .tv_usec = most_ms % 1000 * 1000}};
	if (most_ms == 0) timer.it_value.tv_usec = 1;
	if (most_ms != -1) (void)setitimer(ITIMER_REAL, &timer, NULL);
	*sender = getppid();
	return sigwait(signals, signal) == 0 && *signal != SIGALRM ? 0 : -1;
}

bool platform_lists_all_names(int directory) {
	(void)directory;
	return false;
}

int platform_open_in_mount(int directory, const char *path, int flags, bool beneath, bool at_once) {
	(void)at_once;
	return platform_open_at_once(directory, path, flags, beneath);
}

bool platform_is_remote(int directory) {
#ifdef ST_LOCAL /* NetBSD */
	struct statvfs s;
	return fstatvfs(directory, &s) == -1 || !(s.f_flag & ST_LOCAL);
#else
	struct statfs s;
	return fstatfs(directory, &s) == -1 || !(s.f_flags & MNT_LOCAL);
#endif
}

int platform_peer_user(int fd, uid_t *user) {
	gid_t group;
	return getpeereid(fd, user, &group);
}

void platform_defer_accept(int fd, int wait_s) { (void)fd, (void)wait_s; }

int64_t platform_transferred(int fd) {
	(void)fd;
	return -1;
}

uint64_t platform_socket_memory(int fd, uint64_t *unsent) {
	(void)fd;
	return *unsent = 0;
}

int64_t platform_waited_ms(int fd, bool *ended) {
	(void)fd, (void)ended;
	return -1;
}

int64_t platform_queue(int fd, int64_t *most) {
	(void)fd, (void)most;
	return -1;
}

int64_t platform_listen_drops(int fd) {
	(void)fd;
	return -1;
}

int platform_stop_listening(int fd, int backlog) {
	(void)fd, (void)backlog;
	errno = ENOSYS;
	return -1;
}

static uint64_t group_memory(void) { return UINT64_MAX; }

static uint64_t machine_memory(void) {
	const long pages = sysconf(_SC_PHYS_PAGES);
	return pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;
}

struct platform_tcp platform_tcp(void) {
	return (struct platform_tcp){-1, -1, -1};
}
void platform_release_memory(void) {}

#endif

long platform_send_queue(int fd) {
	int bytes;
#if defined(__linux__)
	return ioctl(fd, SIOCOUTQ, &bytes) == -1 ? -1 : bytes;
#elif defined(SO_NWRITE)
	socklen_t length = sizeof bytes;
	return getsockopt(fd, SOL_SOCKET, SO_NWRITE, &bytes, &length) == -1 ? -1 : bytes;
#elif defined(FIONWRITE)
	return ioctl(fd, FIONWRITE, &bytes) == -1 ? -1 : bytes;
#else
	(void)fd, (void)bytes;
	return -1;
#endif
}

void platform_limit_unsent(int fd, uint32_t bytes) {
#ifdef TCP_NOTSENT_LOWAT
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
#else
	(void)fd, (void)bytes;
#endif
}

uint64_t platform_memory(void) {
	enum { UNKNOWN = 1024 * 1024 * 1024 }; /* few machines have less */
	const uint64_t machine = machine_memory(), group = group_memory();
	return group < machine ? group : machine == UINT64_MAX ? UNKNOWN : machine;
}

bool platform_can_open_beneath(void) {
	int fd = platform_open_beneath(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1) close(fd);
	return fd != -1;
}

/* --- passwords --- */

static bool take_hash(const char *hash, char *out) {
	if (!hash || *hash == '*' || strlen(hash) >= PLATFORM_CRYPT_ROOM) return false;
	memcpy(out, hash, strlen(hash) + 1);
	return true;
}

#if defined(__linux__) || defined(__FreeBSD__)

bool platform_crypt(const char *password, const char *setting, char *out) {
	struct crypt_data *data = calloc(1, sizeof *data);
	if (!data) return false;
	errno = 0;
	bool known = take_hash(crypt_r(password, setting, data), out);
	const int error = errno;
	free(data);
	/* libxcrypt sets EINVAL when there is no memory for yescrypt or scrypt */
	errno = strncmp(setting, "$y$", 3) == 0 || strncmp(setting, "$gy$", 4) == 0 || strncmp(setting, "$7$", 3) == 0
				? ENOMEM
				: error;
	return known;
}

#else

bool platform_crypt(const char *password, const char *setting, char *out) {
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mutex);
	errno = 0;
	bool known = take_hash(crypt(password, setting), out);
	pthread_mutex_unlock(&mutex);
	return known;
}

#endif
