/* permission.h - the answer to "may this be?". What could not be determined is denied: it is the value 0, which a
 * forgotten case leaves. */
#ifndef GATLING_SITE_ACCESS_PERMISSION_H
#define GATLING_SITE_ACCESS_PERMISSION_H

enum permission {
	PERMISSION_DENIED,
	PERMISSION_REALM, /* for those whom a realm admits (basic_auth.h) */
	PERMISSION_OPEN
};

#endif
