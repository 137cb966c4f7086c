/* platform.c - see platform.h. */
#include "bench/platform.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#ifdef SOCK_CLOEXEC

int platform_socket(int family, int type, bool nonblocking) {
	return socket(family, type | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0), 0);
}

int platform_pipe(int end[2]) { return pipe2(end, O_CLOEXEC); }

#else /* macOS */

int platform_socket(int family, int type, bool nonblocking) {
	int fd = socket(family, type, 0);
	if (fd == -1 || (fcntl(fd, F_SETFD, FD_CLOEXEC) != -1 && (!nonblocking || fcntl(fd, F_SETFL, O_NONBLOCK) != -1)))
		return fd;
	const int error = errno;
	close(fd);
	errno = error;
	return -1;
}

int platform_pipe(int end[2]) {
	if (pipe(end) == -1) return -1;
	(void)fcntl(end[0], F_SETFD, FD_CLOEXEC);
	(void)fcntl(end[1], F_SETFD, FD_CLOEXEC);
	return 0;
}

#endif

int platform_socketpair(int end[2]) {
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, end) == -1) return -1;
	if (fcntl(end[0], F_SETFL, O_NONBLOCK) != -1 && fcntl(end[1], F_SETFL, O_NONBLOCK) != -1) return 0;
	const int error = errno;
	close(end[0]);
	close(end[1]);
	errno = error;
	return -1;
}

static const char *program;
void platform_remember_program(const char *argument) { program = argument; }

#ifdef __linux__

void platform_end_with_parent(void) { (void)prctl(PR_SET_PDEATHSIG, SIGKILL); }
void platform_adopt_orphans(void) { (void)prctl(PR_SET_CHILD_SUBREAPER, 1); }
void platform_name_process(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }
const char *platform_program(void) { return "/proc/self/exe"; }
bool platform_linked_statically(void) { return !getauxval(AT_BASE); }

#else

void platform_end_with_parent(void) {}
void platform_adopt_orphans(void) {}
void platform_name_process(const char *name) { (void)name; }
const char *platform_program(void) { return program; }
bool platform_linked_statically(void) { return false; }

#endif
