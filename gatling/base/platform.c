/* platform.c - see platform.h. */
#include "gatling/base/platform.h"

#ifdef __linux__
#include <crypt.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/openat2.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>

/* openat2(2) says EAGAIN to a path with ".." while another process moves directories */
enum { OPEN_ATTEMPTS = 8 };

int platform_open_beneath(int directory, const char *path, int flags) {
	struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd;
	int attempts = 0;
	do fd = syscall(SYS_openat2, directory, path, &how, sizeof how);
	while (fd == -1 && errno == EAGAIN && ++attempts < OPEN_ATTEMPTS);
	return (int)fd;
}

void platform_defer_accept(int fd, int wait_s) {
	/* a failure costs only time */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &wait_s, sizeof wait_s);
}

bool platform_has_ktls(void) {
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1) return false;
	/* a kernel that knows kTLS says that this socket is not connected yet */
	bool has = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", strlen("tls")) == 0 || errno == ENOTCONN;
	close(fd);
	return has;
}

#else

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

void platform_defer_accept(int fd, int wait_s) { (void)fd, (void)wait_s; }

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

bool platform_can_open_beneath(void) {
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (here == -1) return false;
	int fd = platform_open_beneath(here, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd != -1) close(fd);
	close(here);
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
	bool known = take_hash(crypt_r(password, setting, data), out);
	free(data);
	return known;
}

#else

bool platform_crypt(const char *password, const char *setting, char *out) {
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mutex);
	bool known = take_hash(crypt(password, setting), out);
	pthread_mutex_unlock(&mutex);
	return known;
}

#endif
