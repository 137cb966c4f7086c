/* directives.h - the directives of Apache that a .htaccess may have and that are not about who may have a file, as far
 * as one can tell by their names. */
#ifndef GATLING_SITE_ACCESS_DIRECTIVES_H
#define GATLING_SITE_ACCESS_DIRECTIVES_H

#include <stdbool.h>

#include "gatling/base/slice.h"

/* Returns whether a name, in upper or lower case, is that of such a directive. */
bool directive_is_harmless(struct slice name);

/* Returns whether a directive that has such a name, with its arguments, forbids something all the same: a RewriteRule
 * with the flag F or G, or a Redirect, with a status that is an error. */
bool directive_forbids(struct slice name, struct slice arguments);

/* What a condition says about Apache 2.4, as far as that is known here. */
enum directive_condition { CONDITION_UNKNOWN, CONDITION_FALSE, CONDITION_TRUE };

/* Returns whether Apache 2.4 has a module, by its name or that of its file; "!" in front negates. Modules are unknown
 * that Apache has only if its owner wants it. */
enum directive_condition directive_if_module(struct slice argument);

/* Returns whether the arguments of IfVersion, such as ">= 2.4", hold for Apache 2.4. */
enum directive_condition directive_if_version(struct slice arguments);

#endif
