/* The loops of limits.c for one width of vector, which its macros describe. */

#define EACH for (int i = 0; i < CHAINS; i++)

static inline TARGET float NAMED(total)(VECTOR *sums) {
    float all[WIDTH], result = 0;
    EACH {
        __builtin_memcpy(all, &sums[i], sizeof all);
        for (int j = 0; j < WIDTH; j++) result += all[j];
    }
    return result;
}

/* To float32's last digit or two: an approximation and one step of Newton's. */
static inline TARGET VECTOR NAMED(one_over)(VECTOR x) {
    if (WIDTH == 1) return ABOUT_ONE_OVER(x);
    VECTOR r = ABOUT_ONE_OVER(x);
    return MUL(r, FMA(MUL(SAME(-1.0f), x), r, SAME(2.0f)));
}

static TARGET float NAMED(fma)(long iterations) {
    VECTOR sums[CHAINS], a = SAME(0.75f), b = SAME(0.5f);
    EACH sums[i] = SAME(0.1f * i);
    while (iterations--) {
        EACH sums[i] = FMA(sums[i], a, b);
    }
    return NAMED(total)(sums);
}

static TARGET float NAMED(divide)(long iterations) {
    VECTOR sums[CHAINS];
    EACH sums[i] = SAME(1.5f + 0.1f * i);
    while (iterations--) {
        EACH sums[i] = DIVIDE(SAME(1.0f), sums[i]);
    }
    return NAMED(total)(sums);
}

static TARGET float NAMED(reciprocal)(long iterations) {
    VECTOR sums[CHAINS];
    EACH sums[i] = SAME(1.5f + 0.1f * i);
    while (iterations--) {
        EACH sums[i] = NAMED(one_over)(sums[i]);
    }
    return NAMED(total)(sums);
}

/* What an additive score costs for each element: fma, reciprocal, fma. */
static TARGET float NAMED(additive_one)(long iterations) {
    VECTOR sums[CHAINS], query = SAME(1.25f), key = SAME(0.75f), v = SAME(0.01f);
    EACH sums[i] = SAME(0.0f);
    while (iterations--) {
        EACH {
            UNKNOWN(key);
            sums[i] = FMA(v, NAMED(one_over)(FMA(query, key, SAME(1.0f))), sums[i]);
        }
    }
    return NAMED(total)(sums);
}

/* The same with one reciprocal, or division, for two elements: v/a + w/b = (v·b + w·a) / (a·b). */
static TARGET float NAMED(additive_two)(long iterations) {
    VECTOR sums[CHAINS], query = SAME(1.25f), key = SAME(0.75f), v = SAME(0.01f);
    VECTOR other_key = SAME(0.5f), w = SAME(0.02f);
    EACH sums[i] = SAME(0.0f);
    while (iterations--) {
        for (int i = 0; i < CHAINS / 2; i++) {
            UNKNOWN(key);
            UNKNOWN(other_key);
            VECTOR a = FMA(query, key, SAME(1.0f)), b = FMA(query, other_key, SAME(1.0f));
            VECTOR upper = FMA(v, b, MUL(w, a));
            sums[i] = PLUS_QUOTIENT(sums[i], upper, MUL(a, b));
        }
    }
    return NAMED(total)(sums);
}

/* The same with one for four: the quotients of two pairs, added in the same way. */
static TARGET float NAMED(additive_four)(long iterations) {
    VECTOR sums[CHAINS], query = SAME(1.25f), v = SAME(0.01f), w = SAME(0.02f);
    VECTOR key = SAME(0.75f), other_key = SAME(0.5f), third_key = SAME(0.625f), last_key = SAME(0.875f);
    EACH sums[i] = SAME(0.0f);
    while (iterations--) {
        for (int i = 0; i < CHAINS / 4; i++) {
            UNKNOWN(key);
            UNKNOWN(other_key);
            UNKNOWN(third_key);
            UNKNOWN(last_key);
            VECTOR a = FMA(query, key, SAME(1.0f)), b = FMA(query, other_key, SAME(1.0f));
            VECTOR c = FMA(query, third_key, SAME(1.0f)), d = FMA(query, last_key, SAME(1.0f));
            VECTOR upper = FMA(v, b, MUL(w, a)), lower = MUL(a, b);
            VECTOR next = FMA(v, d, MUL(w, c)), below = MUL(c, d);
            VECTOR whole = FMA(upper, below, MUL(next, lower));
            sums[i] = PLUS_QUOTIENT(sums[i], whole, MUL(lower, below));
        }
    }
    return NAMED(total)(sums);
}

/* v · tanh(q + k), tanh as a good rational function: odd of degree 13 over even of degree 6. */
static TARGET float NAMED(additive_tanh)(long iterations) {
    VECTOR sums[CHAINS], query = SAME(0.25f), key = SAME(0.75f), v = SAME(0.01f);
    EACH sums[i] = SAME(0.0f);
    while (iterations--) {
        EACH {
            UNKNOWN(key);
            VECTOR x = CLAMP(FMA(SAME(1.0f), query, key), SAME(-7.9f), SAME(7.9f));
            VECTOR square = MUL(x, x);
            VECTOR upper = FMA(square, SAME(-2.76076847742355e-16f), SAME(2.00018790482477e-13f));
            upper = FMA(upper, square, SAME(-8.60467152213735e-11f));
            upper = FMA(upper, square, SAME(5.12229709037114e-08f));
            upper = FMA(upper, square, SAME(1.48572235717979e-05f));
            upper = FMA(upper, square, SAME(6.37261928875436e-04f));
            upper = FMA(upper, square, SAME(4.89352455891786e-03f));
            VECTOR lower = FMA(square, SAME(1.19825839466702e-06f), SAME(1.18534705686654e-04f));
            lower = FMA(lower, square, SAME(2.26843463243900e-03f));
            lower = FMA(lower, square, SAME(4.89352518554385e-03f));
            sums[i] = FMA(MUL(v, MUL(x, upper)), NAMED(one_over)(lower), sums[i]);
        }
    }
    return NAMED(total)(sums);
}

/* eˣ = 2ⁿ · eʳ with |r| ≤ ½ ln 2, eʳ by a polynomial of degree 5. */
static TARGET float NAMED(exponential)(long iterations) {
    VECTOR sums[CHAINS], x = SAME(-0.75f);
    EACH sums[i] = SAME(0.0f);
    while (iterations--) {
        EACH {
            UNKNOWN(x);
            VECTOR n = ROUND(MUL(x, SAME(1.44269504f)));
            VECTOR r = FMA(n, SAME(-0.693359375f), x);
            r = FMA(n, SAME(2.12194440e-4f), r);
            VECTOR p = FMA(r, SAME(8.3333333e-3f), SAME(4.1666667e-2f));
            p = FMA(p, r, SAME(1.6666667e-1f));
            p = FMA(p, r, SAME(0.5f));
            p = FMA(p, r, SAME(1.0f));
            p = FMA(p, r, SAME(1.0f));
            sums[i] = FMA(SAME(0.5f), TIMES_POWER_OF_2(p, n), sums[i]);
        }
    }
    return NAMED(total)(sums);
}

#undef EACH
#undef LEVEL
#undef TARGET
#undef WIDTH
#undef VECTOR
#undef SAME
#undef FMA
#undef MUL
#undef DIVIDE
#undef ABOUT_ONE_OVER
#undef PLUS_QUOTIENT
#undef CLAMP
#undef ROUND
#undef TIMES_POWER_OF_2
#undef UNKNOWN
