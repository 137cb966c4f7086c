/* qpack.c - see qpack.h. */
#include "bench/httpbench/transport/qpack.h"

#include <nghttp3/nghttp3.h>
#include <stdlib.h>
#include <string.h>

#include "bench/client/http3_frames.h"

/* Appends the head of a frame to a request, which has room for it. */
static void add_head(struct target_bytes *request, enum http3_frame_type type, size_t length) {
	request->length += http3_number_make(type, request->at + request->length);
	request->length += http3_number_make(length, request->at + request->length);
}

static void add(struct target_bytes *request, const nghttp3_buf *b) {
	memcpy(request->at + request->length, b->pos, nghttp3_buf_len(b));
	request->length += nghttp3_buf_len(b);
}

bool qpack_request(const struct target_field *field, unsigned fields, size_t content, struct target_bytes *request) {
	const nghttp3_mem *memory = nghttp3_mem_default();
	nghttp3_qpack_encoder *encoder;
	nghttp3_nv lines[TARGET_FIELDS_MAX];
	nghttp3_buf prefix, section, unused;
	for (unsigned i = 0; i < fields; i++)
		lines[i] = (nghttp3_nv){.name = (uint8_t *)field[i].name.at,
								.namelen = field[i].name.length,
								.value = (uint8_t *)field[i].value.at,
								.valuelen = field[i].value.length};
	nghttp3_buf_init(&prefix);
	nghttp3_buf_init(&section);
	nghttp3_buf_init(&unused);
	*request = (struct target_bytes){0};
	if (nghttp3_qpack_encoder_new(&encoder, 0, memory) != 0) return false;
	if (nghttp3_qpack_encoder_encode(encoder, &prefix, &section, &unused, 0, lines, fields) == 0) {
		const size_t length = nghttp3_buf_len(&prefix) + nghttp3_buf_len(&section);
		if ((request->at = malloc(length + 4 * HTTP3_NUMBER))) {
			add_head(request, HTTP3_HEADERS, length);
			add(request, &prefix);
			add(request, &section);
			if (content) add_head(request, HTTP3_DATA, content);
		}
	}
	nghttp3_buf_free(&prefix, memory);
	nghttp3_buf_free(&section, memory);
	nghttp3_buf_free(&unused, memory);
	nghttp3_qpack_encoder_del(encoder);
	return request->at != NULL;
}
