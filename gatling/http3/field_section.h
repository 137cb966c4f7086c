/* field_section.h - decodes a field section of HTTP/3 to a request (RFC 9114, section 4; RFC 9204). The dynamic table
 * is not used: the server allows none, so that each section stands alone. */
#ifndef GATLING_HTTP3_FIELD_SECTION_H
#define GATLING_HTTP3_FIELD_SECTION_H

#include "gatling/streams/request_fields.h"

/* What sections of all connections of a worker are decoded with, since nothing of one is needed for the next. */
struct field_decoder;

/* Returns NULL if memory runs out. */
struct field_decoder *field_decoder_new(void);
void field_decoder_free(struct field_decoder *decoder); /* NULL is allowed */

enum { FIELD_SECTION_WRONG = -2 };

/* Decodes a section. *request refers to text (REQUEST_TEXT bytes). trailers: it has the trailer fields of a request.
 * See request_fields.h. Returns 0: it is a request; > 0: the status to answer; < 0: REQUEST_MALFORMED, which ends the
 * stream, or FIELD_SECTION_WRONG, which ends the connection. */
int field_section_decode(struct field_decoder *decoder, struct slice section, bool trailers, bool passes, char *text,
						 struct request *request, struct priority *priority);

#endif
