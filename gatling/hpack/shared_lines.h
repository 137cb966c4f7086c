/* shared_lines.h - field lines that many responses have, such as those of Server and Vary. A worker encodes each of
 * them once, and a connection sends it once, and then its index in the dynamic table of HPACK (RFC 7541, section
 * 2.3.2).
 *
 * An entry takes at most 256 bytes of that table, so that the latest 16 are in it wherever it has its initial size of
 * 4096 (RFC 9113, section 6.5.2). */
#ifndef GATLING_HPACK_SHARED_LINES_H
#define GATLING_HPACK_SHARED_LINES_H

#include <stdint.h>

#include "gatling/base/slice.h"
#include "gatling/hpack/hpack.h"

enum {
	SHARED_LINES_MAX = 255, /* lines of a worker, which are never forgotten; others are encoded each time */
	SHARED_LINE_MAX = 224,  /* bytes of a name and its value; section 4.1 adds 32 */
	DYNAMIC_LINES = 16,     /* that are known to be in the table of a connection */
	READY_BLOCK_LINES = 14  /* shared lines of a block */
};

struct shared_lines;

/* Returns none yet, or NULL without memory. */
struct shared_lines *shared_lines_new(void);
void shared_lines_free(struct shared_lines *lines);

/* What a connection has added to its dynamic table. Begins with zeros. */
struct dynamic_lines {
	bool off;                    /* nothing is added, and nothing referred to */
	uint8_t next;                /* where the next number goes */
	uint8_t line[DYNAMIC_LINES]; /* numbers of shared lines, a ring; 0: none */
};

/* A header block that is ready, but for the lines that the table may have. Begins with zeros. */
struct ready_block {
	uint8_t shared, line[READY_BLOCK_LINES]; /* the numbers of its shared lines, from 1 on; */
	struct slice rest;                       /* the others */
	size_t longest;                          /* bytes that the block takes at most */
};

/* Adds field lines ("Name: value", each with its CRLF). Those that are not shared are appended to block->rest, or begin
 * it at out (HPACK_BOUND() bytes for the text of all). */
void ready_block_add(struct ready_block *block, struct shared_lines *lines, struct slice text, char *out);

/* Write a block, or field lines as hpack_fields() does (HPACK_BOUND() bytes), which the connection sends before any
 * block that is written later. Return the end. */
char *ready_block_put(char *at, const struct ready_block *block, const struct shared_lines *lines,
					  struct dynamic_lines *dynamic);
char *shared_lines_put(char *at, struct slice text, const struct shared_lines *lines, struct dynamic_lines *dynamic);

#endif
