/* Exactly rounded quotients by powers of ten. */
#ifndef PRECBENCH_QUOTIENT_H
#define PRECBENCH_QUOTIENT_H

#include <stdint.h>

#define PRECBENCH_MOST_FIVES 27 /* 5**27 < 2**63 */

static const uint64_t precbench_fives[PRECBENCH_MOST_FIVES + 1] = {
    1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u,
    244140625u, 1220703125u, 6103515625u, 30517578125u, 152587890625u, 762939453125u,
    3814697265625u, 19073486328125u, 95367431640625u, 476837158203125u, 2384185791015625u,
    11920928955078125u, 59604644775390625u, 298023223876953125u, 1490116119384765625u,
    7450580596923828125u,
};

/* The double nearest to m / 10**e, for m > 0 and 0 <= e <= PRECBENCH_MOST_FIVES: a quotient of at
 * least 63 bits by 5**e, whose last bit says whether anything remains, is rounded once. */
static inline double precbench_quotient(uint64_t m, int e)
{
    const uint64_t divisor = precbench_fives[e];
    const int up = __builtin_clzll(m), up_divisor = __builtin_clzll(divisor);
    const unsigned __int128 dividend = (unsigned __int128)(m << up) << 63;
    const uint64_t shifted = divisor << up_divisor;
    const unsigned __int128 whole = dividend / shifted;
    const uint64_t quotient = (uint64_t)whole | (dividend != whole * shifted);
    return __builtin_ldexp((double)quotient, up_divisor - up - 63 - e);
}
#endif
