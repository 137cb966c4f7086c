/* libraries.c - see libraries.h. */
#include "gatling/quic/libraries.h"

#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <stdio.h>

void quic_libraries(char text[QUIC_LIBRARIES_MAX]) {
	snprintf(text, QUIC_LIBRARIES_MAX, "HTTP/3: ngtcp2 %s, nghttp3 %s", ngtcp2_version(0)->version_str,
			 nghttp3_version(0)->version_str);
}
