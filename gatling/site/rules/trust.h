/* trust.h - whether a file of rules may say where requests are passed on. That reaches what clients and the users who
 * fill the site cannot reach, so nobody but root, the user who started the server, and the owner of the site's
 * directory may have written the file, as sshd(8) demands with StrictModes. */
#ifndef GATLING_SITE_RULES_TRUST_H
#define GATLING_SITE_RULES_TRUST_H

#include "gatling/site/rules/text_file.h"

enum {
	TRUST_LINKS_MAX = 8, /* symlinks from the path to the file */
	TRUST_WHY_MAX = 512  /* bytes of a reason, with its NUL */
};

/* Returns whether the file at path, as it was read, and the directory that holds it belong to these users, and neither
 * is writable for everybody. The same goes for each symlink that leads to the file, and its directory. site: the path
 * of the site's directory; if that is not the root, everybody must not be able to replace it. Returns false for what
 * cannot be found out, such as for a file that could not be read.
 *
 * If the result is false, writes what is wrong and how to mend it to why (TRUST_WHY_MAX bytes), or "" if that is
 * temporary, or the file could not be read. */
bool trust_file(const struct tree *tree, uid_t starter, const char *site, const char *path,
				const struct text_file *file, char *why);

#endif
