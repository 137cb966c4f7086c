/* help.h - what --help prints. */
#ifndef GATLING_OPTIONS_HELP_H
#define GATLING_OPTIONS_HELP_H

extern const char option_help[];

#endif
