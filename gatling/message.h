/* message.h - a response as field lines and content, whatever carries them. */
#ifndef GATLING_MESSAGE_H
#define GATLING_MESSAGE_H

#include "gatling/answer.h"
#include "io/iob.h"

/* Bytes of the field lines of any response. */
enum { MESSAGE_FIELDS_MAX = 2 * HEADER_OCTETS_MAX + LOCATION_MAX + 2048 };

/* And of this one at most. */
size_t message_fields_room(const struct response *response);

/* The status line of HTTP/1.1, with its CRLF, for any status that answer() and request_parse() can come to. */
struct slice message_status_line(int status);

/* Writes the fields but for Server and Date, each a line with its CRLF, to out (message_fields_room() bytes), and the
 * length of the content that a GET gets to *content_length. The bytes written; 0: there is no randomness for the
 * boundary between parts. */
size_t message_fields(struct response *response, char *out, uint64_t *content_length);

/* The content as bytes in memory, if it is a whole file there; else absent. */
struct slice message_in_memory(const struct response *response);

/* Appends the content to the batch, after message_fields(), and takes file and source over, also when it fails. 0, or
 * -1 (ENOMEM). */
int message_content(iob *batch, struct response *response);

/* Gives up file and source. */
void message_drop(struct response *response);

#endif
