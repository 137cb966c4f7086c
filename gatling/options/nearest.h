/* nearest.h - finds what was meant by a mistyped name. */
#ifndef GATLING_OPTIONS_NEAREST_H
#define GATLING_OPTIONS_NEAREST_H

#include "gatling/options/row.h"

/* Returns the row whose name takes the fewest changes of a character (added, left out, replaced, or swapped with the
 * next one), or that begins with the text. Returns NULL if more than a third of the text would change. rows: a table,
 * or its last part. text: without dashes, up to a '='. */
const struct option_row *nearest_row(const struct option_row *rows, const char *text);

#endif
