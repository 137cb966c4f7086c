/* acme_options.h - the options and limits of the process that gets certificates. */
#ifndef GATLING_ACME_ACME_OPTIONS_H
#define GATLING_ACME_ACME_OPTIONS_H

#include <stdbool.h>

enum {
	ACME_NAMES_MAX = 64,      /* --acme-name */
	ACME_SUBJECTS_MAX = 4096, /* names with certificates; further ones are left out */
	ACME_RUNS = 4,            /* attempts at a time */
	ACME_SCAN_S = 20,         /* between two scans for new directories */
	ACME_ASK_S = 6 * 60 * 60, /* between two questions whether a certificate is to be renewed early (RFC 9773) */
	/* Between two attempts for a name, doubled with each: Let's Encrypt allows 5 failed validations of a name in an
	 * hour (https://letsencrypt.org/docs/rate-limits/). */
	ACME_PAUSE_S = 15 * 60,
	ACME_PAUSE_MAX_S = 12 * 60 * 60,
	ACME_LIMITED_S = 60 * 60, /* pause after a rate limit, if the authority does not say how long */
	ACME_LIMITED_NAMES = 3    /* attempts in a row with a rate limit, after which all names pause */
};

#define ACME_URL "https://acme-v02.api.letsencrypt.org/directory"

struct acme_options {
	bool on;
	const char *email;                /* NULL: none */
	const char *url;                  /* URL of the authority's directory */
	const char *profile;              /* of the certificates; NULL: the authority's default */
	const char *eab;                  /* file with KEYID:KEY of an external account; NULL: none */
	const char *directory;            /* the store, see store.h */
	bool sites;                       /* directories in the root are sites */
	bool beneath;                     /* do not follow links that lead out of the root */
	const char *name[ACME_NAMES_MAX]; /* further names */
	unsigned names;
};

#endif
