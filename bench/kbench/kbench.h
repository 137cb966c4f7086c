/* kbench.h - what the benchmarks of gatling-kbench(1) share. Each benchmark is one file with a function that measures a
 * run, in a process of its own, and a struct benchmark that describes it and its options. */
#ifndef KBENCH_H
#define KBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	KBENCH_VALUES_MAX = 4,  /* columns of a point beside its n */
	KBENCH_KINDS_MAX = 6,   /* variants of a benchmark */
	KBENCH_WARM_UP = 200,   /* the n of the run before the first, which is thrown away */
	KBENCH_WORDS_MAX = 512, /* bytes of what is said of a run */
	RUN_S = 600,            /* that a run may take, before it is ended */
	KBENCH_EXIT_LIMIT = 3   /* exit status: a limit was met; what was measured up to there is valid */
};

/* Options that not every benchmark has; a set. */
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
	unsigned count;                 /* how far n goes */
	unsigned runs;                  /* repetitions */
	unsigned points;                /* at most, that are kept of a run, evenly spread; 0: all */
	const char *kind;               /* of the benchmark's kinds */
	int family;                     /* AF_INET or AF_INET6 */
	unsigned sources;               /* addresses that connections come from */
	unsigned port_first, port_last; /* of the ports that the kernel gives out; 0: as it comes */
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
	unsigned count; /* as in settings, less in the warm-up */
	struct run_record *record;
};

struct benchmark {
	const char *name, *summary, *how;           /* how it is measured: a sentence */
	const char *n;                              /* what n counts */
	const char *columns[KBENCH_VALUES_MAX + 1]; /* with their unit, as "bind_ns" */
	const char *kinds[KBENCH_KINDS_MAX + 1];    /* the first is the default */
	unsigned count;                             /* default */
	unsigned options, streams_max;
	unsigned warm_up;                /* n of the run that is thrown away; 0: KBENCH_WARM_UP */
	bool network;                    /* each run has a network namespace of its own, where that may be */
	int (*measure)(struct run *run); /* 0, or -1 after run_stop(), run_skip() or run_fail() */
};

extern const struct benchmark benchmark_socket, benchmark_bind, benchmark_accept, benchmark_fork, benchmark_mmap,
	benchmark_files, benchmark_event, benchmark_download, benchmark_stream, benchmark_relay, benchmark_forward;

/* Keeps a point: the benchmark's columns, in their order. */
void run_point(struct run *run, unsigned n, const int64_t *values);

/* Names an n where the curve may change, as at a limit. */
void run_landmark(struct run *run, unsigned n, const char *what);

/* Ends the preparation. From here to run_end() the process is named "measured", so that profiles can leave the
 * preparation out. Needed only if that took long. */
void run_begin(void);

/* Ends the measurement: counters that move later do not count. Needed only if cleaning up moves them. */
void run_end(struct run *run);

/* From here on a signal that interrupts lets the run end by itself, as its points are not complete yet: it asks
 * run_interrupted(), and keeps what it has measured. The next signal ends it at once. */
void run_ends_itself(struct run *run);
bool run_interrupted(const struct run *run);

/* Adds a line to the head of the table. */
void run_note(struct run *run, const char *key, const char *value);

/* Notes for how many percent of the time this program was busy: above KBENCH_BUSY_PERCENT the run measured the program,
 * not the kernel. */
enum { KBENCH_BUSY_PERCENT = 90 };
void run_client(struct run *run, unsigned busy_percent);

/* Ends a run because a system call failed at that n; errno tells limits from failures. Returns -1. */
int run_stop(struct run *run, const char *call, unsigned n);

/* Ends a run that is impossible on this system, and says why. Returns -1. */
__attribute__((format(printf, 2, 3))) int run_skip(struct run *run, const char *format, ...);

/* Ends a run that has failed, and says why. Returns -1. */
__attribute__((format(printf, 2, 3))) int run_fail(struct run *run, const char *format, ...);

/* Memory for so many of that size, zeroed and touched, that lasts as long as the run. NULL after run_stop(). */
void *run_memory(struct run *run, size_t count, size_t size);

/* Makes a directory for the files of this run; it is removed with all of them once the run has ended, in whichever way.
 * NULL after run_stop(). */
const char *run_directory(struct run *run);

/* Called first by every forked process, so that it ends with its parent. */
void run_child(void);

/* Whether the run has a network namespace of its own, which it may change. */
bool run_own_namespace(const struct run *run);

/* Whether a word is the kind asked for. */
bool run_kind(const struct run *run, const char *kind);

/* The n of the run before the first, which is thrown away. */
unsigned run_warm_up(const struct benchmark *benchmark, const struct run_settings *settings);

/* Repeats a benchmark in processes of their own; the points go to out as they are kept, with a verdict for each run.
 * The exit status of the program. */
int run_all(const struct benchmark *benchmark, const struct run_settings *settings, FILE *out);

/* Moves the process into a network namespace of its own, with a loopback that is up. false: it may not. */
bool namespace_enter(void);

/* Numbers of a file below /proc; how many there are, up to most. */
unsigned namespace_read_numbers(const char *path, unsigned *number, unsigned most);

/* The range of ports that the kernel gives out here. 0, or -1 with errno. */
int namespace_set_ports(unsigned first, unsigned last);
int namespace_ports(unsigned *first, unsigned *last);

#endif
