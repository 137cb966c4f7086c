/* default.c - the mechanism that loops begin with: the build's choice. */
#include "io/mechanism.h"

const struct io_mechanism *const io_default = &IO_DEFAULT;
