/* sandbox.h - gives up, for good, what serving does not need: privileges, files, system calls. What a system cannot
 * take away is left out, and the server runs all the same; sandbox_describe() says which parts are in force. One file
 * for each system, sandbox-*.c, defines what is not in sandbox.c; the build takes one. */
#ifndef GATLING_SANDBOX_SANDBOX_H
#define GATLING_SANDBOX_SANDBOX_H

#include <stdbool.h>

enum {
	SANDBOX_PARTS = 6, /* at most */
	SANDBOX_OFF = -1   /* instead of an errno: not wanted */
};

/* The sandbox of the server. All but the first four members are zero before the first call. */
struct sandbox {
	bool on;       /* limit files and system calls; privileges are always given up */
	bool connects; /* to upstreams, over TCP */
	bool passes;   /* requests on to upstreams, over TCP or not */
	bool beneath;  /* no file outside the working directory is opened */
	struct {
		const char *name; /* as sandbox_describe() names it */
		int error;        /* 0: in force; else an errno or SANDBOX_OFF */
	} part[SANDBOX_PARTS];
	unsigned parts;
	bool read_only; /* sandbox_limit_files() has made it so, whatever a call says that it opens files for */
};

/* Takes down that a part is in force (error: 0), or why not. The name must last. */
void sandbox_note(struct sandbox *sandbox, const char *name, int error);

/* Returns the parts that are in force, then those that are not, with the reason; to be freed with free(). NULL: no
 * memory. */
char *sandbox_describe(const struct sandbox *sandbox);

/* These four are called in this order; all of them apply to the whole process and to the threads that it starts. */

/* Gives up core files, which would contain keys, and the means to gain privileges: programs that have them
 * (PR_SET_NO_NEW_PRIVS) and the bounding set of capabilities, which takes CAP_SETPCAP. */
void sandbox_refuse_privileges(void);

/* Gives up all capabilities, and being traced by other processes of the same user. A process that stays root keeps
 * CAP_DAC_READ_SEARCH: it can read files whatever their modes. To be called after the change of user, which allows
 * tracing again (prctl(2), PR_SET_DUMPABLE). */
void sandbox_drop_capabilities(struct sandbox *sandbox);

/* Makes the whole file system read-only: nothing is written, created, removed or executed by name. With `beneath`,
 * nothing outside the working directory is read. Descriptors that are open stay as they are. No other thread may run
 * yet. */
void sandbox_limit_files(struct sandbox *sandbox);

/* Refuses all system calls but those of a server that has its sockets and its loops (ENOSYS): no new socket and no
 * connection (connects: but over TCP), no program, no process, no tracing, no signals to others, no executable memory.
 * Threads may run. */
void sandbox_limit_calls(struct sandbox *sandbox);

/* Does all this in the process that opens files (opener.h), which keeps the capabilities to read and write files
 * whatever their modes. It may open any file, but start no process or thread. on: limit its system calls. connects: it
 * connects to unix sockets. */
void sandbox_enter_opener(bool on, bool connects);

#endif
