/* The updates on compressed sparse rows: only the entries of a row are touched. */

#include "stream.h"

static inline double dot(const double *data, const int32_t *index, int64_t from, int64_t to,
                         const double *x)
{
    double total = 0.0;
    for (int64_t e = from; e < to; e++)
        total += data[e] * x[index[e]];
    return total;
}

static inline void add(const double *data, const int32_t *index, int64_t from, int64_t to,
                       double step, double *x)
{
    for (int64_t e = from; e < to; e++)
        x[index[e]] += step * data[e];
}

void td_sparse(struct sparse s, double alpha, double alpha_w, double *restrict theta,
               double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        int64_t from = s.ptr[t], to = s.ptr[t + 1];
        double v = dot(s.data, s.index, from, to, theta);
        double next_v = dot(s.next_data, s.next_index, s.next_ptr[t], s.next_ptr[t + 1], theta);
        double delta = s.reward[t] + s.discount[t] * next_v - v;
        add(s.data, s.index, from, to, alpha * s.rho[t] * delta, theta);
    }
}

/* dphi.phi and |dphi|^2 need phi.phi' alone: both lists of indices are walked at once. */
void o2td_sparse(struct sparse s, double alpha, double alpha_w, double *restrict theta,
                 double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        int64_t from = s.ptr[t], to = s.ptr[t + 1];
        int64_t next_from = s.next_ptr[t], next_to = s.next_ptr[t + 1];
        double gamma = s.discount[t], own = 0.0, next = 0.0, both = 0.0;
        for (int64_t e = from; e < to; e++)
            own += s.data[e] * s.data[e];
        for (int64_t e = next_from; e < next_to; e++)
            next += s.next_data[e] * s.next_data[e];
        for (int64_t a = from, b = next_from; a < to && b < next_to;) {
            int32_t i = s.index[a], j = s.next_index[b];
            both += i == j ? s.data[a] * s.next_data[b] : 0.0;
            a += i <= j;
            b += j <= i;
        }
        double square = own - 2.0 * gamma * both + gamma * gamma * next;
        double omega = square > 0.0 ? (own - gamma * both) / square : 0.0;
        double v = dot(s.data, s.index, from, to, theta);
        double next_v = dot(s.next_data, s.next_index, next_from, next_to, theta);
        double delta = s.reward[t] + gamma * next_v - v;
        add(s.data, s.index, from, to, alpha * s.rho[t] * omega * delta, theta);
    }
}

void etd_sparse(struct sparse s, double alpha, double alpha_w, double *restrict theta,
                double *restrict w)
{
    double follow = 0.0;
    for (int64_t t = 0; t < s.n; t++) {
        int64_t from = s.ptr[t], to = s.ptr[t + 1];
        follow = t == 0 || s.start[t] ? 1.0 : 1.0 + s.discount[t - 1] * s.rho[t - 1] * follow;
        double v = dot(s.data, s.index, from, to, theta);
        double next_v = dot(s.next_data, s.next_index, s.next_ptr[t], s.next_ptr[t + 1], theta);
        double delta = s.reward[t] + s.discount[t] * next_v - v;
        add(s.data, s.index, from, to, alpha * s.rho[t] * follow * delta, theta);
    }
}

void gtd2_sparse(struct sparse s, double alpha, double alpha_w, double *restrict theta,
                 double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        int64_t from = s.ptr[t], to = s.ptr[t + 1];
        int64_t next_from = s.next_ptr[t], next_to = s.next_ptr[t + 1];
        double v = dot(s.data, s.index, from, to, theta);
        double next_v = dot(s.next_data, s.next_index, next_from, next_to, theta);
        double wphi = dot(s.data, s.index, from, to, w);
        double delta = s.reward[t] + s.discount[t] * next_v - v;
        double step = alpha * s.rho[t] * wphi;
        add(s.data, s.index, from, to, step, theta);
        add(s.next_data, s.next_index, next_from, next_to, -step * s.discount[t], theta);
        add(s.data, s.index, from, to, alpha_w * (s.rho[t] * delta - wphi), w);
    }
}
