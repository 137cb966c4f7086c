/* field_section.c - see field_section.h. */
#include "gatling/http3/field_section.h"

#include <nghttp3/nghttp3.h>
#include <stdlib.h>

struct field_decoder {
	nghttp3_qpack_decoder *decoder;
	nghttp3_qpack_stream_context *context;
};

static void close_decoder(struct field_decoder *d) {
	nghttp3_qpack_stream_context_del(d->context);
	nghttp3_qpack_decoder_del(d->decoder);
	*d = (struct field_decoder){0};
}

/* Opens the decoder, unless it is open. Returns false without memory. */
static bool open_decoder(struct field_decoder *d) {
	if (d->context) return true;
	if (nghttp3_qpack_decoder_new(&d->decoder, 0, 0, nghttp3_mem_default()) == 0 &&
		nghttp3_qpack_stream_context_new(&d->context, 0, nghttp3_mem_default()) == 0)
		return true;
	close_decoder(d);
	return false;
}

struct field_decoder *field_decoder_new(void) {
	struct field_decoder *d = calloc(1, sizeof *d);
	if (d && open_decoder(d)) return d;
	free(d);
	return NULL;
}

void field_decoder_free(struct field_decoder *d) {
	if (!d) return;
	close_decoder(d);
	free(d);
}

static bool add_field(struct request_fields *fields, const nghttp3_qpack_nv *nv) {
	const nghttp3_vec name = nghttp3_rcbuf_get_buf(nv->name), value = nghttp3_rcbuf_get_buf(nv->value);
	const bool added = request_fields_add(fields, (struct slice){.at = (const char *)name.base, .length = name.len},
										  (struct slice){.at = (const char *)value.base, .length = value.len});
	nghttp3_rcbuf_decref(nv->name);
	nghttp3_rcbuf_decref(nv->value);
	return added;
}

/* Decodes the fields of a section. Returns 0, 431, or FIELD_SECTION_WRONG. After an error of its own the decoder
 * decodes nothing more: it is closed. */
static int decode(struct field_decoder *d, struct request_fields *fields, struct slice section) {
	uint8_t flags = 0;
	nghttp3_qpack_stream_context_reset(d->context);
	while (!(flags & NGHTTP3_QPACK_DECODE_FLAG_FINAL)) {
		nghttp3_qpack_nv nv;
		nghttp3_ssize n = nghttp3_qpack_decoder_read_request(d->decoder, d->context, &nv, &flags,
															 (const uint8_t *)section.at, section.length, 1);
		if (n < 0 || flags & NGHTTP3_QPACK_DECODE_FLAG_BLOCKED) {
			close_decoder(d);
			return n == NGHTTP3_ERR_QPACK_HEADER_TOO_LARGE ? 431 : FIELD_SECTION_WRONG;
		}
		section = slice_rest(section, (size_t)n);
		if (flags & NGHTTP3_QPACK_DECODE_FLAG_EMIT && !add_field(fields, &nv)) return 431;
	}
	return 0;
}

int field_section_decode(struct field_decoder *decoder, struct slice section, bool trailers, bool passes, char *text,
						 struct request *request, struct priority *priority) {
	struct request_fields fields = {.version = SLICE(" HTTP/3.0"), .trailers = trailers, .passes = passes};
	request_fields_begin(&fields, request, priority, text);
	const int error = open_decoder(decoder) ? decode(decoder, &fields, section) : 503,
			  status = request_fields_end(&fields, !error);
	return error ? error : status;
}
