/* The updates on dense rows, as one writes them in C: one pass for the dot products of a row, one
 * for its update. All vectors are written without branches, for the compiler to vectorise. */

#include "stream.h"

static inline const double *here(const struct dense *s, int64_t t)
{
    return s->phi + (s->at ? s->at[t] : t) * s->d;
}

static inline const double *there(const struct dense *s, int64_t t)
{
    return s->next + (s->next_at ? s->next_at[t] : t) * s->d;
}

/* theta += alpha rho delta phi */
void td_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
              double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        double v = 0.0, next_v = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            v += theta[j] * phi[j];
            next_v += theta[j] * next[j];
        }
        double step = alpha * s.rho[t] * (s.reward[t] + s.discount[t] * next_v - v);
        for (int64_t j = 0; j < s.d; j++)
            theta[j] += step * phi[j];
    }
}

/* theta += alpha rho omega delta phi, omega = dphi.phi / |dphi|^2 */
void o2td_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
                double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        double gamma = s.discount[t], v = 0.0, next_v = 0.0, along = 0.0, square = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            double dphi = phi[j] - gamma * next[j];
            v += theta[j] * phi[j];
            next_v += theta[j] * next[j];
            along += dphi * phi[j];
            square += dphi * dphi;
        }
        double omega = square > 0.0 ? along / square : 0.0;
        double step = alpha * s.rho[t] * omega * (s.reward[t] + gamma * next_v - v);
        for (int64_t j = 0; j < s.d; j++)
            theta[j] += step * phi[j];
    }
}

/* theta += alpha rho F delta phi, F = 1 + gamma rho F of the row before */
void etd_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
               double *restrict w)
{
    double follow = 0.0;
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        follow = t == 0 || s.start[t] ? 1.0 : 1.0 + s.discount[t - 1] * s.rho[t - 1] * follow;
        double v = 0.0, next_v = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            v += theta[j] * phi[j];
            next_v += theta[j] * next[j];
        }
        double step = alpha * s.rho[t] * follow * (s.reward[t] + s.discount[t] * next_v - v);
        for (int64_t j = 0; j < s.d; j++)
            theta[j] += step * phi[j];
    }
}

/* theta += alpha rho (phi.w) (phi - gamma phi'), w += alpha_w (rho delta - phi.w) phi */
void gtd2_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
                double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        double gamma = s.discount[t], v = 0.0, next_v = 0.0, wphi = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            v += theta[j] * phi[j];
            next_v += theta[j] * next[j];
            wphi += w[j] * phi[j];
        }
        double delta = s.reward[t] + gamma * next_v - v;
        double step = alpha * s.rho[t] * wphi, second = alpha_w * (s.rho[t] * delta - wphi);
        for (int64_t j = 0; j < s.d; j++) {
            theta[j] += step * (phi[j] - gamma * next[j]);
            w[j] += second * phi[j];
        }
    }
}

/* theta += alpha rho (delta phi - gamma (phi.w) phi'), w += alpha_w (rho delta phi - (phi.w) phi - w) */
void tdrc_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
                double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        double gamma = s.discount[t], v = 0.0, next_v = 0.0, wphi = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            v += theta[j] * phi[j];
            next_v += theta[j] * next[j];
            wphi += w[j] * phi[j];
        }
        double delta = s.reward[t] + gamma * next_v - v, keep = 1.0 - alpha_w;
        double step = alpha * s.rho[t] * delta, back = alpha * s.rho[t] * gamma * wphi;
        double second = alpha_w * (s.rho[t] * delta - wphi);
        for (int64_t j = 0; j < s.d; j++) {
            theta[j] += step * phi[j] - back * next[j];
            w[j] = keep * w[j] + second * phi[j];
        }
    }
}

/* gtd2, then its directions once more at the point where that step would end */
void gtd2mp_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
                  double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        double gamma = s.discount[t], v = 0.0, wphi = 0.0, own = 0.0, square = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            double dphi = phi[j] - gamma * next[j];
            v += theta[j] * dphi;
            wphi += w[j] * phi[j];
            own += phi[j] * phi[j];
            square += dphi * dphi;
        }
        double rho = s.rho[t], delta = s.reward[t] - v;
        double then = wphi + alpha_w * (rho * delta - wphi) * own;
        delta -= alpha * rho * wphi * square;
        double step = alpha * rho * then, second = alpha_w * (rho * delta - then);
        for (int64_t j = 0; j < s.d; j++) {
            theta[j] += step * (phi[j] - gamma * next[j]);
            w[j] += second * phi[j];
        }
    }
}

/* theta += alpha rho (delta phi - gamma (phi.w) phi'), w as in gtd2; then both once more as in gtd2mp */
void tdcmp_dense(struct dense s, double alpha, double alpha_w, double *restrict theta,
                 double *restrict w)
{
    for (int64_t t = 0; t < s.n; t++) {
        const double *phi = here(&s, t), *next = there(&s, t);
        double gamma = s.discount[t], v = 0.0, wphi = 0.0, own = 0.0, along = 0.0, across = 0.0;
        for (int64_t j = 0; j < s.d; j++) {
            double dphi = phi[j] - gamma * next[j];
            v += theta[j] * dphi;
            wphi += w[j] * phi[j];
            own += phi[j] * phi[j];
            along += dphi * phi[j];
            across += dphi * next[j];
        }
        double rho = s.rho[t], delta = s.reward[t] - v;
        double then = wphi + alpha_w * (rho * delta - wphi) * own;
        delta -= alpha * rho * (delta * along - gamma * wphi * across);
        double step = alpha * rho * delta, back = alpha * rho * gamma * then;
        double second = alpha_w * (rho * delta - then);
        for (int64_t j = 0; j < s.d; j++) {
            theta[j] += step * phi[j] - back * next[j];
            w[j] += second * phi[j];
        }
    }
}
