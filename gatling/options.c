/* options.c - see options.h. */
#include "gatling/options.h"

#include <getopt.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "io/io.h"
#include "io/version.h"

/* libowfat does not tell its version: the build asks the package manager. */
#ifndef LIBOWFAT_VERSION
#define LIBOWFAT_VERSION "(version unknown)"
#endif

enum { PORT_ROOT = 80, PORT_USER = 8000, TIMEOUT_S = 23 };

static const char help[] = "usage: gatling [options]\n"
						   "Serves the files below a directory over HTTP.\n"
						   "\n"
						   "  -c, --root DIR        serve DIR (default: the current directory);\n"
						   "                        chroots to it when started as root\n"
						   "  -p, --port PORT       default: 80 as root, else 8000; 0: any free one\n"
						   "  -i, --listen ADDR     an IPv4 or IPv6 address or unix:PATH; may be repeated\n"
						   "                        (default: all addresses)\n"
						   "  -u, --user USER       become USER after binding\n"
						   "  -j, --workers N       worker threads (default: one for each usable core)\n"
						   "  -T, --timeout SECONDS for a request, an idle connection and a stalled reader\n"
						   "                        (default: 23; 0: never)\n"
						   "  -d, --listings        list directories without index.html\n"
						   "                        (default without -v)\n"
						   "  -D, --no-listings     do not\n"
						   "  -v, --vhosts          serve only from the directories HOST:PORT/, HOST/ and\n"
						   "                        default/ (without -v: also from DIR itself)\n"
						   "  -V, --no-vhosts       serve from DIR alone\n"
						   "      --symlinks inside do not follow symlinks that lead out of DIR\n"
						   "                        (default: follow)\n"
						   "      --defer-accept off\n"
						   "                        take a connection in before its request is there\n"
						   "                        (default: on, for a second; Linux)\n"
						   "  -n, --no-log          no log line for each request on stdout\n"
						   "  -h, --help            this text\n"
						   "      --version         version, event mechanism and libraries\n";

__attribute__((format(printf, 1, 2), noreturn)) static void refuse(const char *format, ...) {
	va_list arguments;
	va_start(arguments, format);
	fputs("gatling: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs(" (see gatling --help)\n", stderr);
	va_end(arguments);
	exit(2);
}

static int number(const char *name, const char *text, int least, int most) {
	char *end;
	long value = strtol(text, &end, 10);
	if (end == text || *end || value < least || value > most)
		refuse("%s takes a number from %d to %d, not '%s'", name, least, most, text);
	return (int)value;
}

/* Whether it is the first of two words. */
static bool either(const char *name, const char *text, const char *yes, const char *no) {
	if (strcmp(text, yes) != 0 && strcmp(text, no) != 0) refuse("%s takes '%s' or '%s', not '%s'", name, no, yes, text);
	return strcmp(text, yes) == 0;
}

/* Ends after an answer on stdout. */
__attribute__((noreturn)) static void done(void) {
	if (fflush(stdout) == 0) exit(0);
	perror("gatling: cannot write to stdout");
	exit(1);
}

__attribute__((noreturn)) static void print_version(void) {
	printf("gatling %s (%s; libowfat %s, %s, zlib %s)\n", GATLING_VERSION, io_mechanism(), LIBOWFAT_VERSION,
		   OpenSSL_version(OPENSSL_VERSION), zlibVersion());
	done();
}

static const char short_options[] = ":c:p:i:u:j:T:dDvVnh";

enum { LONG_SYMLINKS = 256, LONG_DEFER, LONG_VERSION };

static const struct option long_options[] = {
	{"root", required_argument, NULL, 'c'},
	{"port", required_argument, NULL, 'p'},
	{"listen", required_argument, NULL, 'i'},
	{"user", required_argument, NULL, 'u'},
	{"workers", required_argument, NULL, 'j'},
	{"timeout", required_argument, NULL, 'T'},
	{"listings", no_argument, NULL, 'd'},
	{"no-listings", no_argument, NULL, 'D'},
	{"vhosts", no_argument, NULL, 'v'},
	{"no-vhosts", no_argument, NULL, 'V'},
	{"symlinks", required_argument, NULL, LONG_SYMLINKS},
	{"defer-accept", required_argument, NULL, LONG_DEFER},
	{"no-log", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, LONG_VERSION},
	{0},
};

void options_parse(struct options *o, int argc, char **argv) {
	int listings = -1; /* not said */
	*o = (struct options){.root = ".",
						  .port = geteuid() == 0 ? PORT_ROOT : PORT_USER,
						  .workers = (int)io_processors(),
						  .timeout_s = TIMEOUT_S,
						  .defer_accept = true,
						  .log = true};
	if (o->workers > WORKERS_MAX) o->workers = WORKERS_MAX;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1;) {
		switch (c) {
		case 'c': o->root = optarg; break;
		case 'p': o->port = number("--port", optarg, 0, 65535); break;
		case 'i':
			if (o->addresses == ADDRESSES_MAX) refuse("more than %d addresses to listen on", ADDRESSES_MAX);
			o->address[o->addresses++] = optarg;
			break;
		case 'u': o->user = optarg; break;
		case 'j': o->workers = number("--workers", optarg, 1, WORKERS_MAX); break;
		case 'T': o->timeout_s = number("--timeout", optarg, 0, TIMEOUT_MAX_S); break;
		case 'd': listings = 1; break;
		case 'D': listings = 0; break;
		case 'v': o->vhosts = VHOSTS_ONLY; break;
		case 'V': o->vhosts = VHOSTS_OFF; break;
		case 'n': o->log = false; break;
		case 'h': fputs(help, stdout); done();
		case LONG_SYMLINKS: o->symlinks_inside = either("--symlinks", optarg, "inside", "follow"); break;
		case LONG_DEFER: o->defer_accept = either("--defer-accept", optarg, "on", "off"); break;
		case LONG_VERSION: print_version();
		case ':': refuse("option '%s' needs a value", argv[optind - 1]);
		default:
			if (optopt && strchr(short_options, optopt)) refuse("option '%s' takes no value", argv[optind - 1]);
			if (optopt) refuse("unknown option '-%c'", optopt);
			refuse("unknown option '%s'", argv[optind - 1]);
		}
	}
	if (optind < argc) refuse("unexpected argument '%s'; the directory goes with -c", argv[optind]);
	o->listings = listings == -1 ? o->vhosts != VHOSTS_ONLY : listings;
}
