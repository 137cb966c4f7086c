/* sandbox-linux.c - see sandbox.h: no_new_privs, capabilities(7), landlock(7), seccomp(2). */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "gatling/sandbox/sandbox.h"
#include "io/io.h"

/* When a build with a sanitizer exits, its leak checker starts a task that traces the threads, and reads /proc. Only
 * such a build allows that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

/* --- privileges --- */

static void refuse_privileges(void) {
	/* if this is not permitted, the next line prevents gaining capabilities, too */
	for (unsigned long capability = 0; capability <= CAP_LAST_CAP; capability++)
		(void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void sandbox_refuse_privileges(void) {
	const struct rlimit none = {0};
	(void)setrlimit(RLIMIT_CORE, &none);
	refuse_privileges();
	if (!sanitized) (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Drops all capabilities but those of `these` (a mask of the first 32) that the process has, and sets *kept to the
 * latter. Returns 0 or an errno. */
static int keep_capabilities(uint32_t these, uint32_t *kept) {
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	if (syscall(SYS_capget, &header, data) == -1) return errno;
	*kept = data[0].permitted & these;
	memset(data, 0, sizeof data);
	data[0].permitted = data[0].effective = *kept;
	return syscall(SYS_capset, &header, data) == -1 ? errno : 0;
}

/* Drops all capabilities; one that stays root keeps CAP_DAC_READ_SEARCH. Sets *kept, and returns 0 or an errno. */
static int keep_server_capabilities(uint32_t *kept) {
	return keep_capabilities(geteuid() == 0 ? 1U << CAP_DAC_READ_SEARCH : 0, kept);
}

void sandbox_drop_capabilities(struct sandbox *s) {
	uint32_t kept = 0;
	int error = keep_server_capabilities(&kept);
	if (!sanitized) (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	sandbox_note(s, "no new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : ENOSYS);
	sandbox_note(s, kept ? "no capability but CAP_DAC_READ_SEARCH" : "no capabilities", error);
}

/* --- files --- */

/* What a version of Landlock can refuse. The headers of the system may be older than its kernel. */
struct ruleset {
	uint64_t files, network, scopes; /* struct landlock_ruleset_attr, as of version 6 */
};

static struct ruleset ruleset_of(long version, bool connects) {
	unsigned files = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
	return (struct ruleset){.files = (UINT64_C(1) << files) - 1,
							.network = version < 4 ? 0
									   : connects  ? 1
												   : 3,       /* TCP: bind(2), connect(2) */
							.scopes = version >= 6 ? 3 : 0}; /* abstract unix sockets, signals: of other processes */
}

/* Allows reading files below a directory. Returns 0 or an errno. */
static int allow_reading(int ruleset, int directory) {
	struct landlock_path_beneath_attr rule = {.allowed_access =
												  LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR};
	rule.parent_fd = directory;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == -1 ? errno : 0;
}

static int allow_reading_at(int ruleset, const char *directory) {
	const int fd = open(directory, O_PATH | O_CLOEXEC);
	if (fd == -1) return errno;
	const int error = allow_reading(ruleset, fd);
	close(fd);
	return error;
}

/* Makes all files read-only, and those outside a directory, and another one (-1: none), inaccessible. Returns 0 or an
 * errno. */
static int restrict_files(const char *directory, int also, bool connects) {
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (version == -1) return errno;
	struct ruleset attributes = ruleset_of(version, connects);
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
	if (ruleset == -1) return errno;
	int error = allow_reading_at(ruleset, directory);
	if (!error && also != -1) error = allow_reading(ruleset, also);
	if (sanitized) (void)allow_reading_at(ruleset, "/proc"); /* which a chroot hides */
	if (!error && syscall(SYS_landlock_restrict_self, ruleset, 0) == -1) error = errno;
	close(ruleset);
	return error;
}

void sandbox_limit_files(struct sandbox *s) {
	int error = s->on ? restrict_files(s->beneath ? "." : "/", s->also, s->connects) : SANDBOX_OFF;
	s->read_only = !error;
	sandbox_note(s,
				 error        ? "Landlock"
				 : s->beneath ? "Landlock (read-only, below the directory)"
							  : "Landlock (read-only)",
				 error);
}

/* --- system calls --- */

#undef prlimit64 /* musl has the other name */
#define CALL(name) SCMP_SYS(name)

/* Calls that the C library needs for memory, locks, time and exit, in any process. */
static const int common_calls[] = {
	CALL(brk),
	CALL(clock_getres),
	CALL(clock_gettime),
	CALL(clock_nanosleep),
	CALL(close),
	CALL(exit),
	CALL(exit_group),
	CALL(fstat),
	CALL(fstatfs),
	CALL(futex),
	CALL(getdents64),
	CALL(getegid),
	CALL(geteuid),
	CALL(getgid),
	CALL(getpid),
	CALL(getrandom),
	CALL(gettid),
	CALL(gettimeofday),
	CALL(getuid),
	CALL(lseek),
	CALL(lstat),
	CALL(madvise),
	CALL(mremap),
	CALL(munmap),
	CALL(nanosleep),
	CALL(newfstatat),
	CALL(read),
	CALL(readlink),
	CALL(readlinkat),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(restart_syscall),
	CALL(rseq),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(sched_getaffinity),
	CALL(sched_yield),
	CALL(stat),
	CALL(statx),
	CALL(sysinfo),
	CALL(time),
	CALL(uname),
	CALL(write),
	CALL(writev),
};

/* Calls that serving needs: for files and sockets, the waiting of each event mechanism, threads beside the loops, and
 * the end of the broker. None of them depends on its arguments, so that the kernel knows the answer beforehand, and
 * need not run the filter. */
static const int server_calls[] = {
	CALL(accept),      CALL(accept4),         CALL(access),          CALL(epoll_ctl),
	CALL(epoll_pwait), CALL(epoll_pwait2),    CALL(epoll_wait),      CALL(faccessat),
	CALL(faccessat2),  CALL(fadvise64),       CALL(getpeername),     CALL(dup),
	CALL(getsockname), CALL(getsockopt),      CALL(io_uring_enter),  CALL(poll),
	CALL(ppoll),       CALL(pread64),         CALL(preadv),          CALL(preadv2),
	CALL(recvmmsg),    CALL(readv),           CALL(rt_sigtimedwait), CALL(sendfile),
	CALL(setsockopt),  CALL(set_robust_list), CALL(wait4),
#ifndef __GLIBC__ /* musl's pthread_kill(3); it does not name the process */
	CALL(tkill),
#endif
};

/* Calls that the broker needs: it opens files in any mode, and reads them. */
static const int broker_calls[] = {CALL(fchdir), CALL(fcntl), CALL(open), CALL(openat), CALL(pread64)};

/* Calls that the leak checker and the threads of a build with a sanitizer need. */
static const int sanitizer_calls[] = {
	CALL(clone), CALL(getdents), CALL(getppid),     CALL(kill),   CALL(mincore), CALL(pipe),
	CALL(prctl), CALL(ptrace),   CALL(sigaltstack), CALL(tgkill), CALL(wait4),
};

/* A call that is allowed if one of its arguments meets a condition. */
struct condition {
	int call;
	struct scmp_arg_cmp argument;
};

#define WITHOUT(argument, bits) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, (bits), 0)
#define EQUAL(argument, value) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value)) /* of 32 bits */

enum {
	WRITING = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, /* O_ACCMODE has O_PATH in it with musl */
	SPACES = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS
};

static int allow_all(scmp_filter_ctx filter, const int *call, size_t count) {
	int error = 0;
	for (size_t i = 0; !error && i < count; i++) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call[i], 0);
	return error;
}

static int allow_if(scmp_filter_ctx filter, const struct condition *c, size_t count) {
	int error = 0;
	for (size_t i = 0; !error && i < count; i++)
		error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, c[i].call, 1, &c[i].argument);
	return error;
}

#define ALLOW_ALL(filter, calls) allow_all(filter, calls, sizeof(calls) / sizeof *(calls))
#define ALLOW_IF(filter, conditions) allow_if(filter, conditions, sizeof(conditions) / sizeof *(conditions))

static int allow_common(scmp_filter_ctx filter) {
	const struct condition memory[] = {{CALL(mmap), WITHOUT(2, PROT_EXEC)}, {CALL(mprotect), WITHOUT(2, PROT_EXEC)}};
	/* with MSG_FASTOPEN, a socket that no longer listens would connect; those of UDP, with HTTP/3, send to any address,
	 * which no filter can see */
	const struct condition sending[] = {{CALL(sendmsg), WITHOUT(2, MSG_FASTOPEN)},
										{CALL(sendto), WITHOUT(3, MSG_FASTOPEN)}};
	int error = ALLOW_ALL(filter, common_calls);
	if (!error && sanitized) error = ALLOW_ALL(filter, sanitizer_calls);
	if (!error) error = ALLOW_IF(filter, sending);
	return error ? error : ALLOW_IF(filter, memory);
}

static int allow_lookout(scmp_filter_ctx filter, const struct sandbox *s) {
	(void)s;
	return allow_common(filter);
}

static int allow_broker(scmp_filter_ctx filter, const struct sandbox *s) {
	(void)s;
	int error = allow_common(filter);
	return error ? error : ALLOW_ALL(filter, broker_calls);
}

/* Allows stream sockets of a family, of its own protocol: not MPTCP or SCTP beside TCP. */
static int allow_sockets(scmp_filter_ctx filter, int family) {
	const uint32_t type = UINT32_MAX & ~(uint32_t)(SOCK_NONBLOCK | SOCK_CLOEXEC);
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(socket), 3, EQUAL(0, family),
							SCMP_CMP(1, SCMP_CMP_MASKED_EQ, type, SOCK_STREAM), EQUAL(2, 0));
}

/* What connects to unix sockets opens their files without reading them. */
static int allow_connector(scmp_filter_ctx filter, const struct sandbox *s) {
	const struct condition conditions[] = {{CALL(open), SCMP_CMP(1, SCMP_CMP_MASKED_EQ, O_PATH, O_PATH)},
										   {CALL(openat), SCMP_CMP(2, SCMP_CMP_MASKED_EQ, O_PATH, O_PATH)},
										   {CALL(fcntl), EQUAL(1, F_SETFL)}};
	(void)s;
	int error = allow_common(filter);
	if (!error) error = ALLOW_IF(filter, conditions);
	if (!error) error = allow_sockets(filter, AF_UNIX);
	return error ? error : seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(connect), 0);
}

/* A socket without an address that listens gets a port of its own (tcp(7)), which Landlock does not prevent. */
static int allow_connecting(scmp_filter_ctx filter, const struct sandbox *s) {
	const struct scmp_arg_cmp reserved =
		SCMP_CMP(0, SCMP_CMP_MASKED_EQ, UINT32_MAX & ~(s->listens_count - 1), s->listens_from);
	int error = allow_sockets(filter, AF_INET);
	if (!error) error = allow_sockets(filter, AF_INET6);
	if (!error && s->listens_count) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(listen), 1, reserved);
	return error ? error : seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(connect), 0);
}

/* Without new sockets, those that are there listen again. */
static int allow_listening(scmp_filter_ctx filter) { return seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(listen), 0); }

/* Allows what io_splice() and the reader of cold files need. */
static int allow_splicing(scmp_filter_ctx filter) {
	const struct condition pipes[] = {{CALL(pipe2), EQUAL(1, O_NONBLOCK | O_CLOEXEC)},
									  {CALL(fcntl), EQUAL(1, F_SETPIPE_SZ)}};
	int error = ALLOW_IF(filter, pipes);
	return error ? error : seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(splice), 0);
}

static int allow_server(scmp_filter_ctx filter, const struct sandbox *s) {
	const struct condition conditions[] = {
		{CALL(open), WITHOUT(1, WRITING)},
		{CALL(openat), WITHOUT(2, WRITING)},
		{CALL(fcntl), EQUAL(1, F_GETFD)},
		{CALL(fcntl), EQUAL(1, F_SETFD)},
		{CALL(fcntl), EQUAL(1, F_GETFL)},
		{CALL(fcntl), EQUAL(1, F_SETFL)},
		{CALL(ioctl), EQUAL(1, SIOCOUTQ)},
		{CALL(shutdown), EQUAL(1, SHUT_WR)},
		{CALL(shutdown), EQUAL(1, SHUT_RD)}, /* of listening sockets */
		/* clone3(2) has its flags in memory, and is refused: the C library then calls clone(2) */
		{CALL(clone), SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD | SPACES, CLONE_THREAD)},
		{CALL(prlimit64), SCMP_CMP(2, SCMP_CMP_EQ, 0, 0)}, /* a null pointer: no new limit */
		{CALL(tgkill), EQUAL(0, getpid())},
	};
	/* with these, signals may go to any process that the user may signal */
	const struct condition signals[] = {
		{CALL(fcntl), EQUAL(1, F_SETSIG)}, {CALL(fcntl), EQUAL(1, F_GETOWN_EX)}, {CALL(fcntl), EQUAL(1, F_SETOWN_EX)}};
	int error = allow_common(filter);
	if (!error) error = ALLOW_ALL(filter, server_calls);
	if (!error) error = ALLOW_IF(filter, conditions);
	if (!error) error = s->connects ? allow_connecting(filter, s) : allow_listening(filter);
	if (!error) error = allow_splicing(filter);
	if (!error && strcmp(io_mechanism(), "sigio") == 0) error = ALLOW_IF(filter, signals);
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(setpriority), 2, EQUAL(0, PRIO_PROCESS), EQUAL(1, 0));
	/* its flags are in memory, so that only Landlock can check them; without openat2(2), files are opened as if they
	 * were not in memory */
	if (!error && (s->read_only || s->beneath)) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, CALL(openat2), 0);
	return error;
}

/* Refuses all other calls as a kernel without them does, so that libraries do without them, and logs them if the kernel
 * keeps such a log. Returns 0 or an errno. */
static int restrict_calls(int (*allow)(scmp_filter_ctx, const struct sandbox *), const struct sandbox *s) {
	uint32_t processor = seccomp_arch_native();
	if (processor != SCMP_ARCH_X86_64 && processor != SCMP_ARCH_AARCH64)
		return EOPNOTSUPP; /* other processors have other calls */
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (!filter) return ENOMEM;
	int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (!error) error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	/* these make the filter faster, or log refusals; some kernels cannot do that */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1); /* Linux before 5.16 would slow down the whole process */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (!error) error = allow(filter, s);
	if (!error) error = seccomp_load(filter);
	seccomp_release(filter);
	return -error;
}

void sandbox_limit_calls(struct sandbox *s) {
	sandbox_note(s, "seccomp", s->on ? restrict_calls(allow_server, s) : SANDBOX_OFF);
}

/* --- the sandbox around this one --- */

/* Calls each with arguments that do nothing, or are wrong: a sandbox refuses before the kernel looks at them. */
const char *sandbox_refuses(void) {
	const struct timespec no_time = {0};
	struct sigaction action;
	struct msghdr message = {0};
	sigset_t none, mask;
	char octet = 0;
	int end[2];
	sigemptyset(&none);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, end) == -1) return "socketpair";
	const struct {
		const char *name;
		int error;
	} made[] = {
		{"rt_sigaction", sigaction(SIGPIPE, NULL, &action) == -1 ? errno : 0},
		{"rt_sigprocmask", pthread_sigmask(SIG_BLOCK, NULL, &mask)},
		{"rt_sigtimedwait", sigtimedwait(&none, NULL, &no_time) == -1 ? errno : 0},
		{"tgkill", pthread_kill(pthread_self(), 0)},
		{"wait4", waitpid(-1, NULL, WNOHANG) == -1 ? errno : 0},
		{"pselect6", pselect(0, NULL, NULL, NULL, &no_time, NULL) == -1 ? errno : 0},
		{"poll", poll(NULL, 0, 0) == -1 ? errno : 0},
		{"accept4", accept4(end[0], NULL, NULL, SOCK_CLOEXEC) == -1 ? errno : 0},
		{"sendto", send(end[0], &octet, 1, MSG_NOSIGNAL) == -1 ? errno : 0},
		{"recvfrom", recv(end[1], &octet, 1, 0) == -1 ? errno : 0},
		{"sendmsg", sendmsg(end[0], &message, MSG_NOSIGNAL) == -1 ? errno : 0},
		{"recvmsg", recvmsg(end[1], &message, 0) == -1 ? errno : 0},
	};
	close(end[0]);
	close(end[1]);
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
		errno = made[i].error;
		if (errno == EPERM || errno == EACCES || errno == ENOSYS) return made[i].name;
	}
	return NULL;
}

/* --- the processes outside --- */

/* Limits the process to itself and to the calls. on: the latter, too. */
static void enter(const char *name, bool on, int (*allow)(scmp_filter_ctx, const struct sandbox *)) {
	const struct rlimit none = {0};
	(void)prctl(PR_SET_NAME, name);
	(void)setrlimit(RLIMIT_NPROC, &none);
	if (on) (void)restrict_calls(allow, &(struct sandbox){0});
}

void sandbox_enter_keeper(bool runs_programs) {
	const struct rlimit none = {0};
	(void)setrlimit(RLIMIT_CORE, &none);
	if (!runs_programs) refuse_privileges();
}

void sandbox_enter_lookout(bool on) {
	uint32_t kept;
	sandbox_refuse_privileges();
	(void)keep_capabilities(1U << CAP_DAC_READ_SEARCH, &kept);
	enter("gatling-lookout", on, allow_lookout);
}

void sandbox_enter_broker(bool on) {
	uint32_t kept;
	sandbox_refuse_privileges();
	(void)keep_capabilities(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH, &kept);
	enter("gatling-broker", on, allow_broker);
}

/* Gives up privileges, and becomes the user. Returns NULL, or why that is not possible. */
static const char *become(const struct account *user) {
	uint32_t kept;
	sandbox_refuse_privileges();
	const char *wrong = user ? account_become_with_groups(user) : NULL;
	if (wrong) return wrong;
	if (!sanitized) (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the change of user may have allowed tracing again */
	const int error = keep_server_capabilities(&kept);
	return error ? strerror(error) : NULL;
}

const char *sandbox_enter_connector(bool on, const struct account *user) {
	const char *wrong = become(user);
	if (!wrong) enter("gatling-connect", on, allow_connector);
	return wrong;
}

const char *sandbox_enter_resolver(bool on, const struct account *user) {
	const char *wrong = become(user);
	(void)prctl(PR_SET_NAME, "gatling-resolve");
	if (!wrong && on) (void)restrict_files("/", -1, true);
	return wrong;
}
