/* site_file.c - see site_file.h. */
#include "gatling/files/site_file.h"

#include "gatling/http/coding.h"

const char *const site_file_name[SITE_FILES] = {[SITE_HEADERS] = "_headers",
												[SITE_REDIRECTS] = "_redirects",
												[SITE_LIMITS] = "_limits",
												[SITE_PASSWORDS] = ".htaccess_global"};

bool site_file_is_rules(struct slice name) {
	if (!name.length || name.at[0] != '_') return false; /* the usual case */
	name = coding_original(name);
	for (enum site_file i = 0; i < SITE_FILES; i++)
		if (slice_equal(name, slice_of(site_file_name[i]))) return true;
	return false;
}
