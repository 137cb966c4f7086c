/* platform.h - for the programs in C: what differs between systems. */
#ifndef BENCH_PLATFORM_H
#define BENCH_PLATFORM_H

#include <errno.h>
#include <stdbool.h>

#ifndef ENODATA /* FreeBSD and OpenBSD */
#define ENODATA ENOMSG
#endif

/* Call socket(2) and pipe(2), and set FD_CLOEXEC. Return -1 with errno if they fail. */
int platform_socket(int family, int type, bool nonblocking);
int platform_pipe(int end[2]);

/* Makes a pair of stream sockets in non-blocking mode. Returns 0, or -1 with errno. */
int platform_socketpair(int end[2]);

/* Makes the system end this process when its parent ends, where it can. */
void platform_end_with_parent(void);

/* Makes descendants whose parent ends children of this process, where the system can. */
void platform_adopt_orphans(void);

/* Names this process, for programs that sample its stacks, where the system can. */
void platform_name_process(const char *name);

/* platform_program() returns a path of this program. main() first calls platform_remember_program() with argv[0]. */
void platform_remember_program(const char *argument);
const char *platform_program(void);

/* Returns whether this program is linked statically; false also if that is not known. */
bool platform_linked_statically(void);

#endif
