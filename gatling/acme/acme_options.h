/* acme_options.h - what the owner wants of the process that gets certificates, and its limits. */
#ifndef GATLING_ACME_ACME_OPTIONS_H
#define GATLING_ACME_ACME_OPTIONS_H

#include <stdbool.h>

enum {
	ACME_NAMES_MAX = 64,      /* --acme-name */
	ACME_SUBJECTS_MAX = 4096, /* names with certificates; more are left out */
	ACME_RUNS = 4,            /* attempts at a time */
	ACME_SCAN_S = 20,         /* between two looks for new directories */
	/* Between two attempts for a name, doubled with each: Let's Encrypt allows 5 failed validations of a name in an
	 * hour (https://letsencrypt.org/docs/rate-limits/). */
	ACME_PAUSE_S = 15 * 60,
	ACME_PAUSE_MAX_S = 12 * 60 * 60,
	ACME_LIMITED_S = 60 * 60, /* when the authority wants fewer requests and does not say until when, */
	ACME_LIMITED_NAMES = 3    /* and for all names, when it says so for so many one after the other */
};

#define ACME_URL "https://acme-v02.api.letsencrypt.org/directory"

struct acme_options {
	bool on;
	const char *email;                /* NULL: none */
	const char *url;                  /* of the authority's directory */
	const char *eab;                  /* file with KEYID:KEY of an external account; NULL: none */
	const char *directory;            /* of the store */
	bool sites;                       /* directories are sites */
	bool beneath;                     /* links that lead out of the root are not followed */
	const char *name[ACME_NAMES_MAX]; /* further names */
	unsigned names;
};

#endif
