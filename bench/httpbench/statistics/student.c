/* student.c - see student.h. With t = sqrt(freedom) * tan(a) the density becomes a power of cos(a) over a finite range,
 * which Simpson's rule integrates. */
#include "bench/httpbench/statistics/student.h"

#include <math.h>

enum { STEPS = 512, HALVINGS = 60 };
static const double T_MAX = 1e9;

double student_below(double t, double freedom) {
	const double end = atan(fabs(t) / sqrt(freedom)), width = end / STEPS, power = freedom - 1;
	double sum = 1 + pow(cos(end), power);
	for (int i = 1; i < STEPS; i++) sum += (i % 2 ? 4 : 2) * pow(cos(i * width), power);
	const double scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(acos(-1));
	const double part = scale * sum * width / 3;
	return t < 0 ? 0.5 - part : 0.5 + part;
}

double student_quantile(double part, double freedom) {
	double least = 0, most = 1;
	while (most < T_MAX && student_below(most, freedom) < part) most *= 2;
	for (int i = 0; i < HALVINGS; i++) {
		const double middle = (least + most) / 2;
		if (student_below(middle, freedom) < part) least = middle;
		else most = middle;
	}
	return most;
}
