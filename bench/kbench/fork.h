/* fork.h - what kbench is when it is a child of its own benchmark. */
#ifndef KBENCH_FORK_H
#define KBENCH_FORK_H

#include "bench/kbench/kbench.h"

#define FORK_CHILD "--child" /* its one argument */

/* Writes a byte to standard output, then waits to be ended. */
__attribute__((noreturn)) int fork_child(void);

#endif
