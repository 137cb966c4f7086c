/* sandbox.h - permanently gives up what serving does not need: privileges, files, system calls. Where a system does not
 * support a part, the server runs without it; sandbox_describe() tells which parts are in force. Each system has a file
 * sandbox-*.c, which defines what is not in sandbox.c; the build takes one of them.
 *
 * What is in force on Linux, for processes of root with -u (without -u, server, connector and resolver stay root, and
 * keep CAP_DAC_READ_SEARCH; acme and its uacme give up nothing, nor does the keeper but privileges and core files):
 *
 *              capabilities                            Landlock                   seccomp allows
 *   server     none                                    read-only; no TCP bind(2)  what serving needs
 *   lookout    CAP_DAC_READ_SEARCH                     none                       to look at files, to open none
 *   broker     CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE   none                       to open and write files
 *   connector  none                                    none                       O_PATH, unix sockets, connect(2)
 *   resolver   none                                    read-only; no TCP bind(2)  everything
 */
#ifndef GATLING_SANDBOX_SANDBOX_H
#define GATLING_SANDBOX_SANDBOX_H

#include <stdbool.h>

#include "gatling/sandbox/account.h"

enum {
	SANDBOX_PARTS = 6, /* at most */
	SANDBOX_OFF = -1   /* in place of an errno: turned off */
};

/* The sandbox of the server. All but the first six members are zero before the first call. */
struct sandbox {
	bool on;       /* limit files and system calls; privileges are always given up */
	bool connects; /* to upstreams, over TCP */
	bool beneath;  /* no file outside the working directory is opened, */
	int also;      /* but for those below this one, a descriptor; -1: none */
	/* With `connects`: the only descriptors that may listen, which no new socket can have. The count is a power of two
	 * that divides the first; 0: none. */
	unsigned listens_from, listens_count;
	struct {
		const char *name; /* as sandbox_describe() names it */
		int error;        /* 0: in force; else an errno or SANDBOX_OFF */
	} part[SANDBOX_PARTS];
	unsigned parts;
	bool read_only; /* sandbox_limit_files() has made all files read-only, however they are opened */
};

/* Records that a part is in force (error: 0), or why it is not. The name is not copied. */
void sandbox_note(struct sandbox *sandbox, const char *name, int error);

/* Returns the parts that are in force, then those that are not, with the reason. The caller frees the text with free().
 * Returns NULL without memory. */
char *sandbox_describe(const struct sandbox *sandbox);

/* The next four functions are called in this order. Each applies to the whole process, and to the threads that it
 * starts. */

/* Disables core files, which would contain keys, and the means to gain privileges: programs that have them
 * (PR_SET_NO_NEW_PRIVS), and the bounding set of capabilities (if CAP_SETPCAP allows it). */
void sandbox_refuse_privileges(void);

/* Drops all capabilities, and prevents tracing by other processes of the same user. A process that stays root keeps
 * CAP_DAC_READ_SEARCH: it can read files whatever their modes. Call it after the change of user, which allows tracing
 * again (prctl(2), PR_SET_DUMPABLE). */
void sandbox_drop_capabilities(struct sandbox *sandbox);

/* With Landlock: makes the whole file system read-only: nothing is written, created, removed or executed by name. With
 * `beneath`, nothing outside the working directory is read. Descriptors that are open stay as they are. No other thread
 * may run yet. */
void sandbox_limit_files(struct sandbox *sandbox);

/* Refuses all system calls (ENOSYS) but those that a server needs once it has its sockets and loops: no new socket and
 * no connection (except over TCP if `connects`, and then none that listens), no program, no process, no tracing, no
 * signals to others, no executable memory. Other threads may run. */
void sandbox_limit_calls(struct sandbox *sandbox);

/* Returns the name of a system call that every server needs and the sandbox around this process refuses, with errno; or
 * NULL. Call it while the process has no children. */
const char *sandbox_refuses(void);

/* Gives up what neither the keeper (keeper/keeper.h) nor a server that it starts needs: core files and, unless the
 * server runs programs, privileges that it does not have. */
void sandbox_enter_keeper(bool runs_programs);

/* Gives up privileges, capabilities and system calls for the process that looks up the directory (keeper/lookout.h),
 * which keeps the capability to do so whatever the modes above it are. on: limit its system calls. */
void sandbox_enter_lookout(bool on);

/* The same for the process that opens files (broker.h), which keeps the capabilities to read and write files
 * whatever their modes. It may open any file, but start no process or thread. on: limit its system calls. */
void sandbox_enter_broker(bool on);

/* The same for the process that connects to unix sockets. It becomes the user, in all of that user's groups, and
 * keeps no capability; without one (NULL) it keeps what a server has that stays root. Returns NULL, or why it cannot
 * become the user: then it must connect to nothing. */
const char *sandbox_enter_connector(bool on, const struct account *user);

/* The same for the process that looks up the addresses of upstreams. Modules of the C library do that, which may take
 * any system call: on: make all files read-only. It goes on to start threads. */
const char *sandbox_enter_resolver(bool on, const struct account *user);

#endif
