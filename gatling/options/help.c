/* help.c - see help.h. */
#include "gatling/options/help.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_WIDTH = 25 };

static const char *const heading[] = {
	[GENERAL] = "usage: gatling [options] [DIR]\n"
				"Serves the files below DIR (default: the current directory) over HTTP and HTTPS.\n",
	[HTTPS] = "HTTPS, if there is a certificate: server.pem or HOST.pem in DIR, or",
	[ACME] = "usage: gatling --acme[=EMAIL] [options] [DIR]\n"
			 "Gets certificates for the sites from Let's Encrypt, and renews them (uacme).\n",
	[LOGGING] = "Logging, a line for each request:",
	[INSTEAD] = "Instead of serving:",
	[LIMITS] = "usage: gatling [--limit NAME=VALUE]... [options] [DIR]\n"
			   "SIZE is a number of bytes; K, M or G appended: of KiB, MiB or GiB. BURST is how\n"
			   "many requests may come at once (default: N). -T SECONDS sets timeout.\n",
};

static void print_row(const struct option_row *row) {
	const char *argument = row->argument ? row->argument : "";
	char label[2 * LABEL_WIDTH];
	if (row->section == LIMITS) snprintf(label, sizeof label, "%s=%s", row->name, argument);
	else
		snprintf(label, sizeof label, "%c%c%c --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
				 row->letter ? ',' : ' ', row->name, *argument && *argument != '[' ? " " : "", argument);
	printf("  %-*s %s\n", LABEL_WIDTH, label, row->help);
	if (row->initial) printf("  %-*s (default: %s)\n", LABEL_WIDTH, "", row->initial);
}

void help_print(const struct option_row *rows, const char *subject) {
	static const char *const subjects[] = {[ACME] = "acme", [LIMITS] = "limits"};
	const struct option_row *before = NULL;
	unsigned only = LIMITS;
	while (only && (!subjects[only] || !subject || strcmp(subjects[only], subject) != 0)) only--;
	for (const struct option_row *row = rows; row->name; row++) {
		if (only ? row->section != only : subjects[row->section] != NULL) continue;
		if (!before || before->section != row->section) printf("%s%s\n", before ? "\n" : "", heading[row->section]);
		print_row(row);
		before = row;
	}
}
