/* hash.h - hashes bytes for tables in memory. It does not withstand an adversary who chooses the keys. */
#ifndef GATLING_BASE_HASH_H
#define GATLING_BASE_HASH_H

#include <stdint.h>

#include "gatling/base/slice.h"

/* Hashes s as FNV-1a does (http://www.isthe.com/chongo/tech/comp/fnv/), but eight bytes at a time; the last eight may
 * overlap those before. The length is hashed, too, so that leading zeros count if there are fewer than eight bytes. The
 * seed is multiplied by 2^64 / golden ratio, so that no change of a letter undoes a change of the seed. */
static inline uint64_t hash_octets(uint64_t seed, struct slice s) {
	enum { WORD = sizeof(uint64_t) };
	const uint64_t prime = UINT64_C(1099511628211);
	uint64_t h = seed * UINT64_C(0x9e3779b97f4a7c15) ^ s.length ^ UINT64_C(14695981039346656037), word = 0;
	for (size_t n = 0; n + WORD < s.length; n += WORD) {
		memcpy(&word, s.at + n, WORD);
		h = (h ^ word) * prime;
		h ^= h >> 32;
	}
	if (s.length >= WORD) memcpy(&word, s.at + s.length - WORD, WORD);
	else
		for (size_t n = 0; n < s.length; n++) word = word << 8 | (unsigned char)s.at[n];
	h = (h ^ word) * prime;
	/* every bit of the input changes every bit of the hash (Murmur3, fmix64) */
	h = (h ^ h >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
	return h ^ h >> 33;
}

#endif
