/*
 * DRF in C: the lowest dominant share over weight goes first.
 *
 *   cc -O2 -shared -fPIC -I"$(python -c 'from evenhand.compiled import include; print(include())')" \
 *       -o compiled_policy.so compiled_policy.c
 */
#include "evenhand_policy.h"

int32_t drf(double now, int64_t users, int64_t resources, const int64_t *user, const double *shares,
            const double *demand, const double *weight, const double *submitted, const int64_t *position,
            const double *requested, double *keys, void *data) {
    (void)now, (void)user, (void)demand, (void)submitted, (void)position, (void)requested, (void)data;
    for (int64_t row = 0; row < users; row++) {
        double dominant = 0;
        for (int64_t r = 0; r < resources; r++) {
            double share = shares[row * resources + r];
            dominant = share > dominant ? share : dominant;
        }
        keys[row] = dominant / weight[row];
    }
    return 0;
}

/* The compiler checks the signature. */
evenhand_key_function evenhand_drf = drf;
