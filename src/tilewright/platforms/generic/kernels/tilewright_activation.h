/* What recurrent and attention kernels share in both float types: named activations and dot products. */
#ifndef TILEWRIGHT_ACTIVATION_H
#define TILEWRIGHT_ACTIVATION_H

#include "tilewright_kernel.h"
#include <math.h>

static inline double tw_activation_sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Activations by the numbers that operator declarations give them. */
#define TW_DEFINE_ACTIVATE(name, type, f, sigmoid, hyperbolic)                                                         \
    static inline type name(int kind, type x, type alpha, type beta) {                                                 \
        switch (kind) {                                                                                                \
        case 1: /* Sigmoid */                                                                                          \
            return sigmoid(x);                                                                                         \
        case 2: /* Tanh */                                                                                             \
            return hyperbolic(x);                                                                                      \
        case 3: /* Relu */                                                                                             \
            return x > 0 ? x : 0;                                                                                      \
        case 4: /* Affine */                                                                                           \
            return alpha * x + beta;                                                                                   \
        case 5: /* LeakyRelu */                                                                                        \
            return x >= 0 ? x : alpha * x;                                                                             \
        case 6: /* ThresholdedRelu */                                                                                  \
            return x >= alpha ? x : 0;                                                                                 \
        case 7: /* ScaledTanh */                                                                                       \
            return alpha * hyperbolic(beta * x);                                                                       \
        case 8: /* HardSigmoid */                                                                                      \
            return fmin##f(fmax##f(alpha * x + beta, 0), 1);                                                           \
        case 9: /* Elu */                                                                                              \
            return x >= 0 ? x : alpha * expm1##f(x);                                                                   \
        case 10: /* Softsign */                                                                                        \
            return x / (1 + fabs##f(x));                                                                               \
        case 11: /* Softplus */                                                                                        \
            return fmax##f(x, 0) + log1p##f(exp##f(-fabs##f(x)));                                                      \
        default: /* none */                                                                                            \
            return x;                                                                                                  \
        }                                                                                                              \
    }
TW_DEFINE_ACTIVATE(tw_activatef, float, f, tw_sigmoidf, tw_tanhf)
TW_DEFINE_ACTIVATE(tw_activate, double, , tw_activation_sigmoid, tanh)
#define TW_ACTIVATE(kind, x, alpha, beta)                                                                              \
    _Generic((x), float: tw_activatef, double: tw_activate)((kind), (x), (alpha), (beta))

/* Dot products with eight partial sums, which compilers turn into vectors without reordering anything. */
#define TW_DEFINE_INNER(name, type)                                                                                    \
    static inline type name(const type *a, const type *b, int count) {                                                 \
        type part[8] = {0}, sum = 0;                                                                                   \
        int i = 0;                                                                                                     \
        for (; i + 8 <= count; i += 8)                                                                                 \
            for (int j = 0; j < 8; j++)                                                                                \
                part[j] += a[i + j] * b[i + j];                                                                        \
        for (; i < count; i++)                                                                                         \
            sum += a[i] * b[i];                                                                                        \
        for (int j = 0; j < 8; j++)                                                                                    \
            sum += part[j];                                                                                            \
        return sum;                                                                                                    \
    }
TW_DEFINE_INNER(tw_innerf, float)
TW_DEFINE_INNER(tw_inner, double)
#define TW_INNER(a, b, count) _Generic(*(a), float: tw_innerf, double: tw_inner)((a), (b), (count))

#define TW_EXP(x) _Generic((x), float: tw_expf, double: exp)(x)
#define TW_TANH(x) _Generic((x), float: tw_tanhf, double: tanh)(x)

/* Limits a sum to [-limit, limit]; a limit of 0 means none. */
#define TW_LIMIT(x, limit) ((limit) > 0 ? (x) > (limit) ? (limit) : (x) < -(limit) ? -(limit) : (x) : (x))

#endif
