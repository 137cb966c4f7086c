/* libraries.h - whether the server has HTTP/3, and with what. A build with HTTP/3 compiles libraries.c and all else in
 * this room; one without it compiles none.c alone, which stands in for all of them. */
#ifndef GATLING_QUIC_LIBRARIES_H
#define GATLING_QUIC_LIBRARIES_H

enum { QUIC_LIBRARIES_MAX = 128 };

/* Writes the libraries of HTTP/3 and their versions as they run, or says that there is no HTTP/3 and what it needs: a
 * line without its end. */
void quic_libraries(char text[QUIC_LIBRARIES_MAX]);

#endif
