/* nearest.h - finds what was meant by a mistyped name. */
#ifndef GATLING_OPTIONS_NEAREST_H
#define GATLING_OPTIONS_NEAREST_H

#include <getopt.h>

/* Returns the long option whose name takes the fewest changes of a character (added, left out, replaced, or swapped
 * with the next one), or that begins with the text. Returns NULL if more than a third of the text would change. text:
 * without dashes, up to a '='. */
const char *nearest_option(const struct option *options, const char *text);

#endif
