/* version.h - of all programs here. */
#ifndef IO_VERSION_H
#define IO_VERSION_H

#define GATLING_VERSION "0.16"

#endif
