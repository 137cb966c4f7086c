/* http2_memory.c - see http2.h: how much memory a session takes. */
#include "gatling/http2/http2.h"
#include "gatling/http2/session.h"

/* Estimates the bytes that nghttp2 takes: those that RFC 7541, section 4.1 counts, and overhead. */
static size_t table_memory(nghttp2_hd_inflater *inflater) {
	enum { STATIC_ENTRIES = 61, ENTRY = 128, INFLATER = 2048 };
	size_t entries = nghttp2_hd_inflate_get_num_table_entries(inflater) - STATIC_ENTRIES;
	return INFLATER + entries * ENTRY + nghttp2_hd_inflate_get_dynamic_table_size(inflater);
}

size_t http2_memory(const struct http2 *h) {
	return sizeof *h + h->streams.memory + h->block_length + unopened_memory(h->unopened) + table_memory(h->inflater);
}
