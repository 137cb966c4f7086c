/* student.h - Student's t distribution ("The Probable Error of a Mean", 1908), for intervals from few samples. */
#ifndef BENCH_STUDENT_H
#define BENCH_STUDENT_H

/* Returns the probability of a value below t, to nine digits. freedom: degrees of freedom, above 0, not always whole.
 */
double student_below(double t, double freedom);

/* Returns the value below which that part (0.5 to 0.999999) of the distribution is. */
double student_quantile(double part, double freedom);

#endif
