/* dice.h - random numbers for mixtures of steps: the same ones in each run. */
#ifndef TESTS_UNIT_DICE_H
#define TESTS_UNIT_DICE_H

#include <stdint.h>

/* Returns a number from 0 to sides - 1. */
static uint32_t dice(uint32_t sides) {
	static uint32_t seed = 1;
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % sides;
}

#endif
