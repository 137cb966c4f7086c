/* parse.h - parses the command line. */
#ifndef GATLING_OPTIONS_PARSE_H
#define GATLING_OPTIONS_PARSE_H

#include "gatling/options/options.h"

/* Fills *options from the command line, whose strings it refers to. Exits with 0 after --help and --version, and with 2
 * after printing an error. */
void options_parse(struct options *options, int argc, char **argv);

#endif
