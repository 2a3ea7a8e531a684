/* A stream of transitions as the updates read it: borrowed arrays, one entry a row. */

#ifndef O2TD_STREAM_H
#define O2TD_STREAM_H

#include <stdint.h>

/* Row t of phi is phi[at[t]], or phi[t] where at is null; next likewise. */
struct dense {
    int64_t n, d;
    const double *phi, *next;
    const int64_t *at, *next_at;
    const double *reward, *discount, *rho;
    const uint8_t *start;
};

/* Compressed sparse rows: entries ptr[t] to ptr[t + 1] belong to row t, indices ascending. */
struct sparse {
    int64_t n, d;
    const double *data, *next_data;
    const int32_t *index, *next_index;
    const int64_t *ptr, *next_ptr;
    const double *reward, *discount, *rho;
    const uint8_t *start;
};

#endif
