/* usage.c - see usage.h. */
#include "bench/usage.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *usage_program;

int usage_end(int status) {
	if (fflush(stdout) == 0 && !ferror(stdout)) return status;
	fprintf(stderr, "%s: cannot write the report: %s\n", usage_program, strerror(errno));
	return status ? status : 1;
}

void usage_help(const char *text) {
	fputs(text, stdout);
	exit(usage_end(0));
}

void usage_refuse(const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	fprintf(stderr, "%s: ", usage_program);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, " (see --help)\n"); /* some are installed under a longer name */
	va_end(arguments);
	exit(2);
}

void usage_bad_option(int answer, char **argv) {
	const char *problem = answer == ':' ? "needs a value" : "is not known";
	/* a word may hold several short options, so the letter is named; a long option is named by its word */
	if (optopt > 0 && optopt <= UCHAR_MAX && argv[optind - 1][1] != '-')
		usage_refuse("option '-%c' %s", optopt, problem);
	usage_refuse("option '%s' %s", argv[optind - 1], problem);
}

static double number(const char *option, const char *what, const char *text, double least, double most) {
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !(value >= least && value <= most))
		usage_refuse("%s takes a number%s from %.15g to %.15g, not '%s'", option, what, least, most, text);
	return value;
}

double usage_number(const char *option, const char *text, double least, double most) {
	return number(option, "", text, least, most);
}

double usage_seconds(const char *option, const char *text, double least, double most) {
	return number(option, " of seconds", text, least, most);
}

uint64_t usage_whole_number(const char *option, const char *text, double least, double most) {
	double value = usage_number(option, text, least, most);
	if (value != floor(value)) usage_refuse("%s takes a whole number, not '%s'", option, text);
	return (uint64_t)value;
}
