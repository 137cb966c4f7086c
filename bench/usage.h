/* usage.h - the command line of a benchmark program: what is wrong with it is said in one line, and ends it with 2. */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include <stdint.h>

extern const char *usage_program; /* its name; set before the functions are called */

/* At the end of main(): the exit status, which is not 0 when what went to stdout could not be written. */
int usage_end(int status);

__attribute__((format(printf, 1, 2), noreturn)) void usage_refuse(const char *format, ...);

/* For what getopt_long(3) answered '?' or, with a ':' before the options' letters, ':'. */
__attribute__((noreturn)) void usage_bad_option(int answer, char **argv);

/* The value of an option. */
double usage_number(const char *option, const char *text, double least, double most);
uint64_t usage_whole_number(const char *option, const char *text, double least, double most);

#endif
