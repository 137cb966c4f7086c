/* student.h - Student's t distribution ("The Probable Error of a Mean", 1908), for confidence intervals from few
 * samples. */
#ifndef BENCH_STUDENT_H
#define BENCH_STUDENT_H

/* Returns the probability that a value is below t, to nine digits. freedom: degrees of freedom, above 0, not
 * necessarily a whole number. */
double student_below(double t, double freedom);

/* Returns the value below which that part of the distribution lies (0.5 to 0.999999). */
double student_quantile(double part, double freedom);

#endif
