/* row.h - a row of the table of options (parse.c), from which parsing, --help, completion and the nearest name for an
 * unknown option come. To add an option is to add a row. */
#ifndef GATLING_OPTIONS_ROW_H
#define GATLING_OPTIONS_ROW_H

#include <stddef.h>
#include <stdint.h>

struct options;
struct option_row;

/* Parses a value into *options. text: the value; NULL if the option has none. After a wrong value it prints a line that
 * says what the option takes, and exits with 2. */
typedef void option_parse(struct options *options, const struct option_row *row, char *text);

/* Where --help prints a row. Those of ACME are in --help acme; the limits, which --limit sets, are in --help limits,
 * and last in the table. */
enum option_section { GENERAL, HTTPS, ACME, LOGGING, INSTEAD, LIMITS };

struct option_row {
	const char *name; /* without dashes; NULL: the end of the table */
	char letter;      /* '\0': none */
	enum option_section section;
	const char *argument; /* the word for its value; "[=WORD]": may be missing; NULL: it has no value */
	const char *help;     /* at most 52 characters, since it has to fit a line */
	/* The kind of its value, where it is stored (offset in struct options), and what it may be; see values.h. */
	option_parse *parse; /* NULL: --help, after which "acme" or "limits" may follow */
	size_t place;
	int64_t least, most;
	const char *words;   /* that it may be, with '|' between them */
	const char *initial; /* of a limit: its default, in words */
};

#endif
