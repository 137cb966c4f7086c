/* test_http_response_head.c - the status and the length in the head of an HTTP/3 response, in each way to encode them;
 * and what is none. */
#include "bench/client/http3_head.h"
#include "tests/unit/check.h"

/* No insertion is required; the base does not matter. */
#define PREFIX "\0\0"
#define SECTION(text) PREFIX text, sizeof PREFIX text - 1

static void assert_parsed(const char *section, size_t length, unsigned status, int64_t content_length) {
	struct http3_head head;
	assert_int_equal(http3_head_parse(&head, section, length), 0);
	assert_int_equal(head.status, status);
	assert_int_equal(head.content_length, content_length);
}

static void a_status_is_found_however_it_is_encoded(void **state) {
	(void)state;
	assert_parsed(SECTION("\xd9"), 200, HTTP3_NO_LENGTH);     /* indexed */
	assert_parsed(SECTION("\xff\x00"), 100, HTTP3_NO_LENGTH); /* in two bytes */
	assert_parsed(SECTION("\xff\x08"), 500, HTTP3_NO_LENGTH); /* the last of them */
	assert_parsed(SECTION("\x5f\x09\x03"
						  "418"),
				  418, HTTP3_NO_LENGTH);                                      /* with the name of an entry */
	assert_parsed(SECTION("\x5f\x09\x83\x68\x2f\x7f"), 418, HTTP3_NO_LENGTH); /* Huffman */
	assert_parsed(SECTION("\x27\x00:status\x03"
						  "200"),
				  200, HTTP3_NO_LENGTH);                                                  /* with its own name */
	assert_parsed(SECTION("\x2d\xb8\x84\x8d\x36\xa3\x82\x10\x01"), 200, HTTP3_NO_LENGTH); /* Huffman, both */
	assert_parsed(SECTION("\xd1\xd9\x27\x00xstatus\x01"
						  "a"),
				  200, HTTP3_NO_LENGTH); /* between others */
}

static void a_length_is_found_however_it_is_encoded(void **state) {
	(void)state;
	assert_parsed(SECTION("\xd9\xc4"), 200, 0);
	assert_parsed(SECTION("\xd9\x54\x04"
						  "1024"),
				  200, 1024);
	assert_parsed(SECTION("\xd9\x54\x83\x08\x04\xd7"), 200, 1024);
	assert_parsed(SECTION("\xd9\x27\x07"
						  "content-length\x01"
						  "7"),
				  200, 7);
	assert_parsed(SECTION("\xd9\x2f\x03\x21\xea\x49\x6a\x4a\xd4\x16\xa9\x93\x3f\x01"
						  "7"),
				  200, 7);
	assert_parsed(SECTION("\xd9\x54\x12"
						  "999999999999999999"),
				  200, 999999999999999999);
}

static void what_is_no_head_is_refused(void **state) {
	static const struct {
		const char *section;
		size_t length;
		int error;
	} wrong[] = {
		{"", 0, HTTP3_DECOMPRESSION_FAILED},
		{"\0", 1, HTTP3_DECOMPRESSION_FAILED},
		{"\1\0\xd9", 3, HTTP3_DECOMPRESSION_FAILED},           /* needs an insertion */
		{SECTION("\x80"), HTTP3_DECOMPRESSION_FAILED},         /* the dynamic table */
		{SECTION("\xd9\x40\x00"), HTTP3_DECOMPRESSION_FAILED}, /* a name of it */
		{SECTION("\xd9\x10"), HTTP3_DECOMPRESSION_FAILED},     /* behind its base */
		{SECTION("\xd9\x00\x00"), HTTP3_DECOMPRESSION_FAILED}, /* a name there */
		{SECTION("\xff\x24"), HTTP3_DECOMPRESSION_FAILED},     /* entry 99, which is none */
		{SECTION("\xff\xff\xff\xff\xff\xff\x01"), HTTP3_DECOMPRESSION_FAILED},
		{SECTION("\x5f\x09\x04"
				 "200"),
		 HTTP3_DECOMPRESSION_FAILED},       /* cut off */
		{SECTION(""), HTTP3_MESSAGE_ERROR}, /* no status */
		{SECTION("\xc4"), HTTP3_MESSAGE_ERROR},
		{SECTION("\xd9\xd9"), HTTP3_MESSAGE_ERROR}, /* two */
		{SECTION("\x5f\x09\x02"
				 "20"),
		 HTTP3_MESSAGE_ERROR},
		{SECTION("\x5f\x09\x04"
				 "2000"),
		 HTTP3_MESSAGE_ERROR},
		{SECTION("\x5f\x09\x03"
				 "2x0"),
		 HTTP3_MESSAGE_ERROR},
		{SECTION("\x5f\x09\x83\x68\x2f\x7e"), HTTP3_MESSAGE_ERROR}, /* the last byte is not filled with ones */
		{SECTION("\x5f\x09\x84\x68\x2f\x7f\xff"), HTTP3_MESSAGE_ERROR},
		{SECTION("\xd9\x54\x00"), HTTP3_MESSAGE_ERROR},
		{SECTION("\xd9\x54\x02-1"), HTTP3_MESSAGE_ERROR},
		{SECTION("\xd9\x54\x13"
				 "1000000000000000000"),
		 HTTP3_MESSAGE_ERROR},
	};
	(void)state;
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct http3_head head;
		assert_int_equal(http3_head_parse(&head, wrong[i].section, wrong[i].length), wrong[i].error);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_is_found_however_it_is_encoded),
		cmocka_unit_test(a_length_is_found_however_it_is_encoded),
		cmocka_unit_test(what_is_no_head_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
