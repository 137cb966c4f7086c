/* intruder.c - a library for LD_PRELOAD that does what an attacker would try who runs code in the server. When the
 * first connection is accepted, the worker tries everything below; so does the broker, before its first reply. Each
 * attempt prints a line "intruder: PROCESS ATTEMPT ERRNO" to stderr; 0: it succeeded. Without a sandbox no attempt
 * fails with ENOSYS or EACCES, and none does harm. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ABSENT = 0x3fffffff }; /* a process that does not exist */

static int listener;

/* Closes a descriptor that should not have been opened. Returns 0, or the errno of the failure. */
static int failed(long fd) {
	int error = fd == -1 ? errno : 0;
	if (fd != -1) close((int)fd);
	return error;
}

static int result_of(long result) { return result == -1 ? errno : 0; }

/* --- files --- */

static int read_passwd(void) { return failed(open("/etc/passwd", O_RDONLY)); }
static int climb_to_passwd(void) { return failed(open("../../../../../../../../etc/passwd", O_RDONLY)); }
static int create(void) { return failed(open("created", O_CREAT | O_WRONLY, 0644)); }
static int open_to_write(void) { return failed(open("a.txt", O_RDWR)); }

static int create_by_openat2(void) {
	struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = 0644};
	return failed(syscall(SYS_openat2, AT_FDCWD, "created2", &how, sizeof how));
}

static int make_directory(void) { return result_of(mkdir("directory", 0755)); }
static int make_link(void) { return result_of(symlink("/", "link")); }
static int give_another_name(void) { return result_of(rename("victim", "victim2")); }
static int remove_file(void) { return result_of(unlink("victim2")) == ENOENT ? 0 : result_of(-1); }
static int cut_off(void) { return result_of(truncate("a.txt", 1)); }
static int change_mode(void) { return result_of(syscall(SYS_fchmodat, AT_FDCWD, "a.txt", 0644)) == EPERM ? 0 : errno; }
static int leave_root(void) { return result_of(chroot("/")); }

/* --- sockets --- */

static int new_socket(void) { return failed(socket(AF_INET, SOCK_STREAM, 0)); }
static int new_unix_socket(void) { return failed(socket(AF_UNIX, SOCK_STREAM, 0)); }
static int new_mptcp_socket(void) { return failed(socket(AF_INET, SOCK_STREAM, 262)); }
static int new_datagram_socket(void) { return failed(socket(AF_INET6, SOCK_DGRAM, 0)); }
static int new_raw_socket(void) {
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	return fd == -1 && errno == EPERM ? 0 : failed(fd);
}
static int new_pair(void) {
	int pair[2], error = result_of(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (!error) close(pair[0]), close(pair[1]);
	return error;
}

/* A socket without an address gets one when it listens. All free numbers are tried, since some may be allowed. */
static int listen_anywhere(void) {
	static int fd[1 << 16];
	int count = 0, error = ENOSYS;
	while (error && count < 1 << 16 && (fd[count] = socket(AF_INET, SOCK_STREAM, 0)) != -1)
		error = result_of(listen(fd[count++], 1));
	while (count) close(fd[--count]);
	return error;
}

static int have_more_descriptors(void) {
	struct rlimit limit = {.rlim_cur = 1 << 16, .rlim_max = 1 << 16};
	return result_of(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL)) == EPERM ? 0 : errno;
}

static int duplicate(void) { return failed(fcntl(listener, F_DUPFD, 100)); }
static int duplicate_to(void) { return failed(syscall(SYS_dup3, listener, 100, 0)); }

static int bind_socket(void) { return result_of(bind(listener, (struct sockaddr *)&(struct sockaddr_in){0}, 16)); }
static int connect_socket(void) {
	return result_of(connect(listener, (struct sockaddr *)&(struct sockaddr_in){0}, 16));
}

/* A listening socket that has been shut down can be connected by sending. */
static int connect_by_sending(void) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	to.sin_port = htons((uint16_t)atoi(getenv("INTRUDER_PORT")));
	if (shutdown(listener, SHUT_RD) == -1) return errno;
	int flags = fcntl(listener, F_GETFL);
	(void)fcntl(listener, F_SETFL, flags & ~O_NONBLOCK);
	int error = result_of(sendto(listener, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to));
	struct iovec part = {.iov_base = "x", .iov_len = 1};
	struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &part, .msg_iovlen = 1};
	if (error == ENOSYS) error = result_of(sendmsg(listener, &message, MSG_FASTOPEN | MSG_NOSIGNAL));
	(void)fcntl(listener, F_SETFL, flags); /* the worker listens again */
	return error;
}

/* --- processes --- */

static int execute(void) { return result_of(execve("", (char *[]){NULL}, (char *[]){NULL})); }

static int new_process(void) {
	long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) _exit(0);
	int error = result_of(child);
	if (child > 0) waitpid((pid_t)child, NULL, 0);
	return error;
}

static int new_namespace(void) { return result_of(unshare(CLONE_NEWUSER)); }
static int trace(void) { return result_of(ptrace(PTRACE_ATTACH, ABSENT, NULL, NULL)); }
static int kill_process(void) { return result_of(kill(getpid(), 0)); }
static int kill_other(void) { return result_of(syscall(SYS_tgkill, ABSENT, ABSENT, 0)); }
static int have_other_signalled(void) { return result_of(fcntl(listener, F_SETOWN, 1)); }
static int become_root(void) { return result_of(syscall(SYS_setuid, 0)); }

static int read_memory(void) {
	struct iovec part = {0};
	return result_of(syscall(SYS_process_vm_readv, ABSENT, &part, 1UL, &part, 1UL, 0UL));
}

/* --- code --- */

static int map_code(void) {
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return code == MAP_FAILED ? errno : 0;
}

static int make_code(void) {
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return result_of(mprotect(data, 4096, PROT_READ | PROT_EXEC));
}

static int new_memory_file(void) { return failed(syscall(SYS_memfd_create, "", 0)); }

/* --- rings --- */

static int new_ring(void) { return failed(syscall(SYS_io_uring_setup, 8, NULL)); }

#if __has_include(<liburing.h>)
#include <dlfcn.h>
#include <liburing.h>

static _Thread_local struct io_uring *ring;

int io_uring_queue_init_params(unsigned entries, struct io_uring *own, struct io_uring_params *params) {
	int (*original)(unsigned, struct io_uring *, struct io_uring_params *) =
		dlsym(RTLD_NEXT, "io_uring_queue_init_params");
	ring = own;
	return original(entries, own, params);
}

/* Makes the worker's own ring do an operation. The worker gets the completion, too, and ignores it, since it has the
 * user_data of a cancellation. Returns 0 or errno. */
static int by_ring(unsigned operation) {
	static const uint64_t name = 3;
	int (*submit)(struct io_uring *) = dlsym(RTLD_DEFAULT, "io_uring_get_events");
	int (*hand_over)(struct io_uring *) = dlsym(RTLD_DEFAULT, "io_uring_submit");
	struct io_uring_sqe *(*next)(struct io_uring *) = dlsym(RTLD_DEFAULT, "io_uring_get_sqe");
	struct io_uring_cqe *c;
	unsigned head;
	int result = ENODATA;
	if (!ring || !next) return ENOSYS; /* the server does not use one */
	struct io_uring_sqe *e = next(ring);
	io_uring_prep_rw((int)operation, e, AT_FDCWD, "a.txt", 0, 0);
	if (operation == IORING_OP_SOCKET) io_uring_prep_rw(IORING_OP_SOCKET, e, AF_INET, NULL, 0, SOCK_STREAM);
	e->user_data = name;
	hand_over(ring);
	if (submit) submit(ring);
	io_uring_for_each_cqe(ring, head, c) if (c->user_data == name) result = c->res < 0 ? -c->res : 0;
	return result;
}

static int open_by_ring(void) { return by_ring(IORING_OP_OPENAT); }
static int socket_by_ring(void) { return by_ring(IORING_OP_SOCKET); }
static int connect_by_ring(void) { return by_ring(IORING_OP_CONNECT); }
static int close_by_ring(void) { return by_ring(IORING_OP_CLOSE); }
static int send_by_ring(void) { return by_ring(IORING_OP_SENDMSG); }
static int listen_by_ring(void) { return by_ring(57 /* IORING_OP_LISTEN, Linux 6.11 */); }
#else
static int open_by_ring(void) { return ENOSYS; }
static int socket_by_ring(void) { return ENOSYS; }
static int connect_by_ring(void) { return ENOSYS; }
static int close_by_ring(void) { return ENOSYS; }
static int send_by_ring(void) { return ENOSYS; }
static int listen_by_ring(void) { return ENOSYS; }
#endif

/* --- all attempts --- */

static const struct attempt {
	const char *name;
	int (*run)(void);
	bool server_alone; /* the broker may do it, or cannot attempt it */
} attempts[] = {
	{"read_passwd", read_passwd, true},
	{"climb_to_passwd", climb_to_passwd, true},
	{"create", create, true},
	{"create_by_openat2", create_by_openat2, false},
	{"open_to_write", open_to_write, true},
	{"make_directory", make_directory, false},
	{"make_link", make_link, false},
	{"rename", give_another_name, false},
	{"remove", remove_file, false},
	{"truncate", cut_off, false},
	{"chmod", change_mode, false},
	{"chroot", leave_root, false},
	{"socket", new_socket, false},
	{"unix_socket", new_unix_socket, false},
	{"mptcp", new_mptcp_socket, false},
	{"datagrams", new_datagram_socket, false},
	{"packets", new_raw_socket, false},
	{"socketpair", new_pair, false},
	{"listen", listen_anywhere, false},
	{"limit", have_more_descriptors, false},
	{"duplicate", duplicate, true},
	{"duplicate_to", duplicate_to, true},
	{"bind", bind_socket, false},
	{"connect", connect_socket, false},
	{"execute", execute, false},
	{"fork", new_process, false},
	{"unshare", new_namespace, false},
	{"ptrace", trace, false},
	{"kill", kill_process, false},
	{"kill_other", kill_other, false},
	{"signal_by_fcntl", have_other_signalled, true},
	{"setuid", become_root, false},
	{"read_memory", read_memory, false},
	{"map_code", map_code, false},
	{"make_code", make_code, false},
	{"memory_file", new_memory_file, false},
	{"ring", new_ring, false},
	{"open_by_ring", open_by_ring, true},
	{"socket_by_ring", socket_by_ring, true},
	{"connect_by_ring", connect_by_ring, true},
	{"close_by_ring", close_by_ring, true},
	{"send_by_ring", send_by_ring, true},
	{"listen_by_ring", listen_by_ring, true},
	{"connect_by_sending", connect_by_sending, true},
};

static unsigned forks; /* the keeper is loaded, its children are servers and the lookout, and brokers are theirs */
static bool in_broker;

static void try_as(const char *process) {
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
		if (!in_broker || getenv("INTRUDER_ALL") || !attempts[i].server_alone)
			dprintf(STDERR_FILENO, "intruder: %s %s %d\n", process, attempts[i].name, attempts[i].run());
	dprintf(STDERR_FILENO, "intruder: %s end 0\n", process);
}

static void try_all(void) { try_as(in_broker ? "broker" : "server"); }

static void note_fork(void) { in_broker = ++forks > 1; }

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, note_fork); }

int accept4(int fd, struct sockaddr *peer, socklen_t *length, int flags) {
	static atomic_flag tried = ATOMIC_FLAG_INIT;
	int accepted = (int)syscall(SYS_accept4, fd, peer, length, flags);
	if (accepted != -1 && !atomic_flag_test_and_set(&tried)) {
		listener = fd;
		try_all();
	}
	return accepted;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
	static bool tried;
	if (in_broker && !tried) {
		tried = true;
		try_all();
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

/* In a main thread, only an order to look again is awaited with these arguments. */
ssize_t recv(int fd, void *data, size_t length, int flags) {
	static bool tried;
	if (forks == 1 && gettid() == getpid() && length == 1 && flags == 0 && !tried) {
		tried = true;
		try_as("lookout");
	}
	return syscall(SYS_recvfrom, fd, data, length, flags, NULL, NULL);
}
