/* owfat.h - libowfat's formatters and scanners. Its headers declare functions "pure" that write through a
 * pointer, which allows a compiler to drop what they wrote; therefore they are included without attributes. */
#ifndef GATLING_BASE_OWFAT_H
#define GATLING_BASE_OWFAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define __attribute__(list)
#include <fmt.h>
#include <ip4.h>
#include <scan.h>
#undef __attribute__

#endif
