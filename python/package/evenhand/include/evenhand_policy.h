/* The signature of a policy in machine code: keys of waiting users. See "Write a policy in machine code" in the guide "Use evenhand from Python". */
#ifndef EVENHAND_POLICY_H
#define EVENHAND_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Computes a key for each row: the lowest goes first. Returns 0; any other number stops the study and is reported.
 *
 * A row is a waiting user; rows are in ascending order of `user`. All arrays live until the function returns, and only
 * `keys` may be written: every one of its elements, and no NaN.
 *
 * The function may be called by several threads at once, without Python's lock, and must return (no longjmp, no C++
 * exception).
 */
typedef int32_t (*evenhand_key_function)(
    double now,              /* time of the decision, in seconds of the workload */
    int64_t users,           /* number of rows, at least 1 */
    int64_t resources,       /* number of columns of `shares` and `demand` */
    const int64_t *user,     /* [users] the number of the user, in the workload's order of users */
    const double *shares,    /* [users][resources] what the user holds, over the capacity */
    const double *demand,    /* [users][resources] what its first waiting task demands, over the capacity */
    const double *weight,    /* [users] the user's weight over the mean weight */
    const double *submitted, /* [users] when its first waiting task was submitted, in seconds */
    const int64_t *position, /* [users] the place of that task among tasks submitted at the same time */
    const double *requested, /* [users] the wall time that the task requested, in seconds; 0 if unknown */
    double *keys,            /* [users] the result */
    void *data);             /* what the policy was made with, or a null pointer */

/* The name that a PyCapsule with such a function must have. */
#define EVENHAND_KEY_CAPSULE "evenhand_key_v1"

#ifdef __cplusplus
}
#endif

#endif
