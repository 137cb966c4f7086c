/* platform.h - the differences between operating systems, each under one name. Other files test for a system only in
 * sandbox/, and where a single call differs: SOCK_NONBLOCK (upstreams.c), MADV_NOHUGEPAGE (workspace.c), and the name
 * of a process (acme.c). */
#ifndef GATLING_BASE_PLATFORM_H
#define GATLING_BASE_PLATFORM_H

#include <fcntl.h>
#include <signal.h>
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

/* The socket option by which the kernel distributes connections over several listening sockets of one address. 0: the
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

/* Opens path as openat(2) does, but nothing outside the directory, wherever symlinks lead. Returns the descriptor, or
 * -1 with errno: EXDEV if the path leads out of the directory. */
int platform_open_beneath(int directory, const char *path, int flags);

/* Opens path as open(2) would after a chroot(2) to the directory (Linux 5.6; on other systems symlinks may lead out of
 * it). */
int platform_open_in_root(int directory, const char *path, int flags);

/* Opens path as openat(2) does, or with `beneath` as platform_open_beneath() does, but fails with EINPROGRESS instead
 * of waiting for a disk, if a part of the path is not in memory (Linux 5.12; on other systems it waits). */
int platform_open_at_once(int directory, const char *path, int flags, bool beneath);

/* Does what platform_open_at_once() does, if at_once, or opens path as that does otherwise, but fails with EXDEV
 * instead of leaving the mount of the directory (Linux 5.6; on other systems it may leave it). */
int platform_open_in_mount(int directory, const char *path, int flags, bool beneath, bool at_once);

/* Returns whether platform_open_beneath() works on this system. */
bool platform_can_open_beneath(void);

/* Returns whether the file system of an open directory finds only the names that readdir(3) returns (Linux; false on
 * other systems). One that mounts directories when they are opened (autofs), or is on another machine, may find
 * more. */
bool platform_lists_all_names(int directory);

/* Returns whether the file system of an open directory may be on another machine, or served by a program, so that any
 * access to a file may take long. */
bool platform_is_remote(int directory);

/* Returns the bytes that have been written to a socket, but not acknowledged by its peer; -1 if the system does not
 * tell. */
long platform_send_queue(int fd);

/* Returns how many bytes of memory the process may use: those of the machine or, if it is less, the limit of its
 * control group (Linux), whose files have to be readable. */
uint64_t platform_memory(void);

/* Gives memory that the C library keeps for later back to the system (glibc). */
void platform_release_memory(void);

/* Returns the bytes that the peer of a TCP connection has acknowledged, plus those received from it; -1 if the system
 * does not tell. */
int64_t platform_transferred(int fd);

/* Returns the bytes of the kernel's memory for TCP that a connection takes, and those of them in *unsent that hold what
 * its peer has not acknowledged; 0 if the system does not tell. */
uint64_t platform_socket_memory(int fd, uint64_t *unsent);

/* Returns how many milliseconds ago a TCP connection received its last bytes, or -1 if the system does not tell. For a
 * connection that has just been accepted, that is mostly the time that it has waited for that. *ended, unless ended is
 * NULL, becomes whether no bytes will follow. */
int64_t platform_waited_ms(int fd, bool *ended);

/* Returns how many connections wait in the queue of a listening TCP socket, or -1 if the system does not tell. *most,
 * unless most is NULL, becomes how many the queue has room for. */
int64_t platform_queue(int fd, int64_t *most);

/* Returns how many connections the kernel has dropped before they could be accepted on a listening TCP socket, modulo
 * 2^32; -1 if the system does not tell. */
int64_t platform_listen_drops(int fd);

/* Makes a listening TCP socket, which is bound to a port with SO_REUSEADDR, stop listening until listen(2) is called.
 * The kernel resets the connections in its queue, and refuses further ones. Meanwhile accept(2) fails with ECONNRESET
 * or EINVAL in all processes that share the socket. backlog: for listen(2), which may be needed in between. Returns 0,
 * or -1 with errno: ENOSYS if the system cannot do this; otherwise it is not known whether the socket listens. */
int platform_stop_listening(int fd, int backlog);

/* Sets *user to the user who created, or connected, the other end of a unix socket. Returns 0, or -1 with errno. */
int platform_peer_user(int fd, uid_t *user);

/* Waits for one of the signals, SIGALRM among them, which are blocked, for at most most_ms (-1: without an end). Sets
 * *signal, and *sender to the process that has sent it (0: one that is not seen here, or the kernel); systems that do
 * not tell name the parent. Returns 0, or -1 if none has come. */
int platform_wait_signal(const sigset_t *signals, int64_t most_ms, int *signal, pid_t *sender);

/* Returns whether the kernel can encrypt TLS records (kTLS). As root, it makes the kernel load its module. */
bool platform_has_ktls(void);

/* Writes the hash of a password to out (PLATFORM_CRYPT_ROOM bytes), with the method and salt in setting, which may be
 * another hash (crypt(3)). Returns false if the system does not know the method, or with errno ENOMEM. Thread-safe. */
enum { PLATFORM_CRYPT_ROOM = 512 };
bool platform_crypt(const char *password, const char *setting, char *out);

/* Sysctls of TCP that matter under load (Linux, tcp(7)); -1: the system does not have it, or does not tell. */
struct platform_tcp {
	int64_t memory;     /* bytes of all buffers above which the kernel makes them smaller (tcp_mem, pressure) */
	int64_t queue;      /* connections that may wait to be accepted on one socket (somaxconn) */
	int64_t syncookies; /* 0: half-open connections over a limit are dropped (tcp_syncookies) */
};

struct platform_tcp platform_tcp(void);

/* Limits how many unsent bytes the kernel holds for a connection, or for each later connection of a listening socket
 * (TCP_NOTSENT_LOWAT, tcp(7)). Does nothing on systems that cannot. */
void platform_limit_unsent(int fd, uint32_t bytes);

/* Makes a listening socket report a connection only when its first bytes have arrived, or after wait_s; 0: at once.
 * Does nothing on systems that cannot. */
void platform_defer_accept(int fd, int wait_s);

#endif
