/* usage.h - errors in the command line of a benchmark program: prints one line to stderr, and exits with status 2. */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

#include <stdint.h>

/* The name of the program; set it before calling these functions. */
extern const char *usage_program;

/* Returns the exit status for main(): status, or 1 instead of 0 if writing to stdout failed. */
int usage_end(int status);

/* Prints the help to stdout and exits with usage_end(0). */
__attribute__((noreturn)) void usage_help(const char *text);

/* Prints the error and exits with status 2. */
__attribute__((format(printf, 1, 2), noreturn)) void usage_refuse(const char *format, ...);

/* Refuses an option for which getopt_long(3) returned '?' or, with a ':' before the options' letters, ':'. */
__attribute__((noreturn)) void usage_bad_option(int answer, char **argv);

/* Parse the value of an option. A number outside least to most is refused. */
double usage_number(const char *option, const char *text, double least, double most);
double usage_seconds(const char *option, const char *text, double least, double most);
uint64_t usage_whole_number(const char *option, const char *text, double least, double most);

#endif
