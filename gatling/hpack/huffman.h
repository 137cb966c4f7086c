/* huffman.h - the Huffman code of HPACK and QPACK (RFC 7541, appendix B). */
#ifndef GATLING_HPACK_HUFFMAN_H
#define GATLING_HPACK_HUFFMAN_H

#include "gatling/base/slice.h"

/* Returns the length of the text once it is encoded, in bytes. */
size_t huffman_length(struct slice text);

/* Writes the encoded text to out (huffman_length() bytes). Returns the end. */
char *huffman_put(char *out, struct slice text);

#endif
