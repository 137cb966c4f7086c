/* none.c - see libraries.h: for a build without HTTP/3. */
#include <stdio.h>

#include "gatling/quic/libraries.h"

void quic_libraries(char text[QUIC_LIBRARIES_MAX]) {
	snprintf(text, QUIC_LIBRARIES_MAX, "no HTTP/3 (needs ngtcp2 1.22, nghttp3 1.15 and OpenSSL 3.5.1)");
}
