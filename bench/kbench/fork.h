/* fork.h - kbench as a child of its own benchmark. */
#ifndef KBENCH_FORK_H
#define KBENCH_FORK_H

#include "bench/kbench/kbench.h"

#define FORK_CHILD "--child" /* the only argument of a child */

/* Writes a byte to standard output, then waits until it is killed. */
__attribute__((noreturn)) int fork_child(void);

#endif
