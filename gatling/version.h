#ifndef GATLING_VERSION_H
#define GATLING_VERSION_H

#define GATLING_VERSION "0.16"

/* libowfat does not tell its version: the build asks the package manager. */
#ifndef LIBOWFAT_VERSION
#define LIBOWFAT_VERSION "(version unknown)"
#endif

#endif
