/* kbench.h - what the benchmarks of gatling-kbench(1) have in common. A benchmark is a file with a function that
 * measures a run, in its own process, and a struct benchmark that describes it and its options. */
#ifndef KBENCH_H
#define KBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	KBENCH_VALUES_MAX = 6,     /* columns of a point, besides n */
	KBENCH_KINDS_MAX = 6,      /* variants of a benchmark */
	KBENCH_WARM_UP = 200,      /* n in the first run, which is discarded */
	KBENCH_WORDS_MAX = 512,    /* bytes of messages about a run */
	RUN_S = 600,               /* seconds after which a run is killed */
	KBENCH_QUEUED_PERCENT = 2, /* of a run, for which it may wait for a processor */
	KBENCH_EXIT_LIMIT = 3      /* exit status: a limit was reached; the results up to there are valid */
};

/* A set of the options that only some benchmarks have. */
enum {
	KBENCH_OPTION_FAMILY = 1,    /* -6 */
	KBENCH_OPTION_SOURCES = 2,   /* --sources */
	KBENCH_OPTION_PORTS = 4,     /* --ports */
	KBENCH_OPTION_DIRECTORY = 8, /* --directory */
	KBENCH_OPTION_STREAMS = 16,  /* --streams */
	KBENCH_OPTION_SIZE = 32,     /* --size */
	KBENCH_OPTION_SERVER = 64,   /* --server */
	KBENCH_OPTION_LINK = 128     /* --link */
};

struct run_settings {
	unsigned count;                 /* n goes up to this */
	unsigned runs;                  /* repetitions */
	unsigned points;                /* limit of the rows of a run, each of a group of points; 0: none */
	const char *kind;               /* one of the benchmark's kinds */
	int family;                     /* AF_INET or AF_INET6 */
	unsigned sources;               /* addresses from which connections come */
	unsigned port_first, port_last; /* the range of ports that the kernel assigns; 0: as it is */
	const char *directory;          /* for files */
	unsigned streams;
	unsigned size;      /* bytes of a datagram's payload */
	const char *server; /* path of gatling */
	const struct link_kind *link;
};

struct run_record; /* the result of a run; see run.c */

/* A run under way. */
struct run {
	const struct run_settings *settings;
	unsigned count; /* that of settings, but less in the first run */
	struct run_record *record;
};

struct benchmark {
	const char *name, *summary, *how;           /* how: a sentence on how it is measured */
	const char *n;                              /* what n counts */
	const char *columns[KBENCH_VALUES_MAX + 1]; /* with their units, as "bind_ns" */
	const char *kinds[KBENCH_KINDS_MAX + 1];    /* the first is the default */
	unsigned count;                             /* the default */
	unsigned options, streams_max;
	unsigned warm_up;                /* n in the first run, which is discarded; 0: KBENCH_WARM_UP */
	bool alone;                      /* one process measures, which waits for a processor only if others take it */
	bool network;                    /* each run has its own network namespace, if possible */
	int (*measure)(struct run *run); /* returns 0, or -1 after run_stop(), run_skip() or run_fail() */
};

extern const struct benchmark benchmark_socket, benchmark_bind, benchmark_accept, benchmark_fork, benchmark_mmap,
	benchmark_files, benchmark_event, benchmark_download, benchmark_stream, benchmark_relay, benchmark_forward;

/* Keeps a point: the values of the benchmark's columns, in their order. */
void run_point(struct run *run, unsigned n, const int64_t *values);

/* Names an n at which the curve may change, such as a limit. */
void run_landmark(struct run *run, unsigned n, const char *what);

/* Ends the preparation. Until run_end() the process is then named "measured", so that profiles can leave the
 * preparation out. Only needed if that takes long. */
void run_begin(void);

/* Ends the measurement: later changes of counters are ignored. Only needed if cleaning up changes them. */
void run_end(struct run *run);

/* From here on an interruption does not end the run, since its points are incomplete. The run must test
 * run_interrupted(), and keep its results. A second signal ends it at once. */
void run_ends_itself(struct run *run);
bool run_interrupted(const struct run *run);

/* Adds a line to the head of the table. */
void run_note(struct run *run, const char *key, const char *value);

/* Notes how many percent of the time this program was busy. Above KBENCH_BUSY_PERCENT, the run measured the program,
 * not the kernel. */
enum { KBENCH_BUSY_PERCENT = 90 };
void run_client(struct run *run, unsigned busy_percent);

/* Ends a run because a system call failed at that n; errno shows whether a limit was reached. Returns -1. */
int run_stop(struct run *run, const char *call, unsigned n);

/* Ends a run that is impossible on this system, with the reason. Returns -1. */
__attribute__((format(printf, 2, 3))) int run_skip(struct run *run, const char *format, ...);

/* Ends a run that has failed, with the reason. Returns -1. */
__attribute__((format(printf, 2, 3))) int run_fail(struct run *run, const char *format, ...);

/* Returns memory for count objects of that size, zeroed and touched, until the run ends, or NULL after run_stop(). */
void *run_memory(struct run *run, size_t count, size_t size);

/* Makes a directory for the files of this run. It is removed with its files when the run ends, however it ends. Returns
 * NULL after run_stop(). */
const char *run_directory(struct run *run);

/* Makes this process end with its parent; every forked process calls this first. */
void run_child(void);

/* Returns whether the run has its own network namespace, which it may change. */
bool run_own_namespace(const struct run *run);

/* Returns whether kind is the one that was chosen. */
bool run_kind(const struct run *run, const char *kind);

/* Returns n for the first run, which is discarded. */
unsigned run_warm_up(const struct benchmark *benchmark, const struct run_settings *settings);

/* Makes the runs of a benchmark, each in its own process, and writes the points and a verdict for each run to out.
 * Returns the exit status of the program. */
int run_all(const struct benchmark *benchmark, const struct run_settings *settings, FILE *out);

/* Moves the process into its own network namespace, and brings up the loopback there. Returns false if this is not
 * allowed. */
bool namespace_enter(void);

/* Reads at most `most` numbers from the first line of a file below /proc. Returns how many there are. */
unsigned namespace_read_numbers(const char *path, unsigned *number, unsigned most);

/* Set and get the range of ports that the kernel assigns in this namespace. Return 0, or -1 with errno. */
int namespace_set_ports(unsigned first, unsigned last);
int namespace_ports(unsigned *first, unsigned *last);

#endif
