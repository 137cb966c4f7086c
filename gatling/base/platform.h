/* platform.h - the differences between operating systems, each under one name, except the sandbox. The server has no
 * other #ifdef for a system. */
#ifndef GATLING_BASE_PLATFORM_H
#define GATLING_BASE_PLATFORM_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>

#if defined(__APPLE__) || defined(__NetBSD__)
#define PLATFORM_MTIME st_mtimespec
#define PLATFORM_CTIME st_ctimespec
#else
#define PLATFORM_MTIME st_mtim
#define PLATFORM_CTIME st_ctim
#endif

/* The socket option with which the kernel distributes connections over several listening sockets of one address. 0: the
 * system has none, and the workers share one socket. */
#if defined(__linux__)
#define PLATFORM_REUSEPORT SO_REUSEPORT
#elif defined(SO_REUSEPORT_LB)
#define PLATFORM_REUSEPORT SO_REUSEPORT_LB
#else
#define PLATFORM_REUSEPORT 0
#endif

/* The flag of open(2) to look at a file without opening it; on systems without one, to open it without waiting. */
#ifdef O_PATH
#define PLATFORM_PATH O_PATH
#else
#define PLATFORM_PATH (O_RDONLY | O_NONBLOCK)
#endif

/* Opens path as open(2), but nothing outside the directory, whatever symlinks say. Returns -1 with errno: EXDEV if the
 * path would lead out. */
int platform_open_beneath(int directory, const char *path, int flags);

/* Opens path as open(2) would after a chroot(2) to the directory (Linux 5.6; on other systems symlinks lead out of it).
 */
int platform_open_in_root(int directory, const char *path, int flags);

/* Opens path as open(2), beneath: as platform_open_beneath(), but does not wait for a disk: -1 with EINPROGRESS if what
 * leads to the file is not in memory (Linux 5.12; on other systems it waits). */
int platform_open_at_once(int directory, const char *path, int flags, bool beneath);

/* Returns whether platform_open_beneath() works on this system. */
bool platform_can_open_beneath(void);

/* Returns whether the file system of an open directory is one that finds only names that it tells (Linux); one that
 * mounts what is asked for (autofs), or asks another machine, may find more. */
bool platform_lists_all_names(int directory);

/* Returns the bytes that a socket has taken but its peer has not acknowledged; -1 where the system does not tell. */
long platform_send_queue(int fd);

/* Returns how many bytes of memory the process may use: all of the machine's, or the limit of its control group
 * (Linux), as long as their files can be opened. */
uint64_t platform_memory(void);

/* Gives free memory back to the system, which the C library may keep otherwise (glibc). */
void platform_release_memory(void);

/* Returns the bytes that the peer of a TCP connection has acknowledged, and those received from it; -1 where the system
 * does not tell. */
int64_t platform_transferred(int fd);

/* Returns how many milliseconds ago a TCP connection received its last bytes: of one that has just been accepted, how
 * long it has waited for that, for the most part. *ended (which may be NULL): whether none will follow. -1 where the
 * system does not tell. */
int64_t platform_waited_ms(int fd, bool *ended);

/* Returns how many connections wait in the queue of a listening TCP socket, of *most (which may be NULL) that it has
 * room for; -1 where the system does not tell. */
int64_t platform_queue(int fd, int64_t *most);

/* Has a listening TCP socket, which is bound to a port with SO_REUSEADDR, listen no more until listen(2) is called: the
 * kernel resets the connections that wait in its queue, and refuses further ones. For all processes: accept(2)
 * fails meanwhile with ECONNRESET or EINVAL. Returns -1 with errno: whether it listens is not known; or the system
 * cannot do this (ENOSYS). */
int platform_stop_listening(int fd, int backlog);

/* Finds the user who has made the other end of a unix socket, or connected to it. Returns 0, or -1 with errno. */
int platform_peer_user(int fd, uid_t *user);

/* Returns whether the kernel can encrypt TLS records (kTLS). As root, makes it load its module. */
bool platform_has_ktls(void);

/* Writes the hash of a password to out (PLATFORM_CRYPT_ROOM bytes), with the method and salt of a setting, which may be
 * another hash (crypt(3)). Returns false if the system does not know the method, or with errno ENOMEM. Thread-safe. */
enum { PLATFORM_CRYPT_ROOM = 512 };
bool platform_crypt(const char *password, const char *setting, char *out);

/* Sysctls of TCP that matter under load (Linux, tcp(7)); -1 where the system has no such thing, or does not tell. */
struct platform_tcp {
	int64_t memory;     /* bytes of all buffers, from which on the kernel makes them smaller (tcp_mem, pressure) */
	int64_t queue;      /* connections that may wait to be accepted, for each socket (somaxconn) */
	int64_t syncookies; /* 0: half-open connections over a limit are dropped (tcp_syncookies) */
};

struct platform_tcp platform_tcp(void);

/* Limits the bytes that connections of a listening socket, from now on, take from the server and have not sent yet
 * (TCP_NOTSENT_LOWAT, tcp(7)). Does nothing on systems that cannot. */
void platform_limit_unsent(int fd, uint32_t bytes);

/* Makes a listening socket report a connection only when its first bytes have arrived, or after wait_s; 0: at once.
 * Does nothing on systems that cannot. */
void platform_defer_accept(int fd, int wait_s);

#endif
