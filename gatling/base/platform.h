/* platform.h - the server's one portability file: what differs between systems, under one name each. */
#ifndef GATLING_BASE_PLATFORM_H
#define GATLING_BASE_PLATFORM_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#if defined(__APPLE__) || defined(__NetBSD__)
#define PLATFORM_MTIME st_mtimespec
#define PLATFORM_CTIME st_ctimespec
#else
#define PLATFORM_MTIME st_mtim
#define PLATFORM_CTIME st_ctim
#endif

/* The socket option with which the kernel spreads connections over several listening sockets of one address; 0 where
 * there is none: then the workers share one socket. */
#if defined(__linux__)
#define PLATFORM_REUSEPORT SO_REUSEPORT
#elif defined(SO_REUSEPORT_LB)
#define PLATFORM_REUSEPORT SO_REUSEPORT_LB
#else
#define PLATFORM_REUSEPORT 0
#endif

/* What open(2) takes to look at a file without opening it; where there is no such thing, without waiting. */
#ifdef O_PATH
#define PLATFORM_PATH O_PATH
#else
#define PLATFORM_PATH (O_RDONLY | O_NONBLOCK)
#endif

/* open(2) of path below directory, whatever symlinks say. -1 with errno: EXDEV when it would lead out. */
int platform_open_beneath(int directory, const char *path, int flags);

/* Whether platform_open_beneath() works here. */
bool platform_can_open_beneath(void);

/* Bytes that a socket has taken but its peer has not acknowledged; -1 where that cannot be known. */
long platform_send_queue(int fd);

/* Whether the kernel can seal records of TLS (kTLS). As root, has it load what it needs for that. */
bool platform_has_ktls(void);

/* Gives away for ever what no part of the server needs: to gain privileges by running a program (Linux), to leave a
 * core file, in which there are keys, and to be looked into by other processes of the same user (Linux). The bounding
 * set of capabilities is emptied by a process that may do so. */
void platform_confine(void);

/* Of a process that is root's: keeps the capability to read and write files whatever their mode, and no other (Linux).
 */
void platform_keep_reading(void);

/* crypt(3): the hash of a password by the method, and with the salt, of a setting, which another hash may be; to out.
 * Any thread may call it. false: the method is not known here. */
enum { PLATFORM_CRYPT_ROOM = 512 };
bool platform_crypt(const char *password, const char *setting, char *out);

/* Lets a listening socket report a connection only when its first bytes are there, or after wait_s; does nothing where
 * there is no such thing. */
void platform_defer_accept(int fd, int wait_s);

#endif
