/* platform.h - what systems do in different ways, for the programs in C. */
#ifndef BENCH_PLATFORM_H
#define BENCH_PLATFORM_H

#include <errno.h>
#include <stdbool.h>

#ifndef ENODATA /* FreeBSD, OpenBSD */
#define ENODATA ENOMSG
#endif

/* socket(2) and pipe(2) whose descriptors programs do not inherit. -1 with errno. */
int platform_socket(int family, int type, bool nonblocking);
int platform_pipe(int end[2]);

/* Two stream sockets that are joined, in non-blocking mode. 0, or -1 with errno. */
int platform_socketpair(int end[2]);

/* Has this process end with its parent, where the system can do that. */
void platform_end_with_parent(void);

/* Names this process for those who sample its stacks, where the system can do that. */
void platform_name_process(const char *name);

/* Returns a path of this program. Called first by main(). */
void platform_remember_program(const char *argument);
const char *platform_program(void);

/* Whether this program needs no libraries of the system's; false: it does, or that is not known. */
bool platform_linked_statically(void);

#endif
