/* Softmax reads of dot products, and the way back: scores and weights of a block of rows stay in
 * the cache, and all weights are held only if the way back is to be given them.
 *
 *     forth    p = softmax(factor q k'),  context = p v
 *     back     g = factor p (sent v' - sum_j p sent v'),  to_v = p' sent,  to_q = g k,  to_k = g' q
 *
 * The way back is given the weights, or finds them again, from the same scores and from what each
 * row's were divided by: no digit is lost to how large they are.
 *
 * Each item has rows of queries, and keys and values of its own or shared with others: all is found
 * by strides, and sharing is a stride of 0. A row sees a span of the keys. Keys are turned once an
 * item, so that a side of them lies together, dimension by dimension: each has a lane of its own, and
 * nothing is summed across. Whatever a tile touches is padded to whole ones.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prefetch.h"
#include "simd.h"
#include "softmax.h"
#include "gemm_tile.h"

enum { TALL = 64, LONG = 128, NEAR = 512 };

/* From an item to the next, along both axes of items, and from a row to the next, in numbers. */
typedef struct {
    long outer, inner, row;
} Strides;

/* native_dots.py has the same fields in the same order. */
typedef struct {
    const float *q, *k, *v, *sent; /* sent: on the way back */
    const long *first, *end;       /* of each row's span; NULL if all see all */
    float *context;
    float *most, *share; /* if SHARES are kept: the highest score of each row and 1 / the sum */
    float *weights;      /* if WEIGHTS are: all of them, in rows padded to runs of sixteen */
    float *to_q, *to_k, *to_v; /* NULL if not wanted */
    Strides of_q, of_k, of_v, of_sent, of_span, of_context, of_to_q, of_to_k, of_to_v;
    long slab_k, slab_v; /* where items share, threads have sums of their own, so far apart; else 0 */
    long outer, inner, rows, keys, size, wide;
    float factor;
    int back, kept; /* said in words: where there are no numbers, a pointer that is given is NULL */
} Dots;

enum { NOTHING, SHARES, WEIGHTS };

/* Vectors one after another. */
typedef struct {
    const float *at;
    long row;
} Rows;

typedef struct {
    float *at;
    long row;
} Sums;

/* One item, and some of its rows. */
typedef struct {
    long outer, inner, from, count;
    Rows q, k, v, sent;
    Sums to_k, to_v; /* on the way back: where they belong, or room for them */
} Item;

/* What one thread works in. */
typedef struct {
    Side *k, *v;           /* turned: (keys / SIDE, size), (keys / SIDE, wide) */
    float *weights, *sent; /* (TALL, stride): scores, then weights; what is sent to them */
    float *sums;           /* (TALL, size or wide) */
    float *to_k, *to_v;    /* (keys, size), (keys, wide) */
    float *lined[3];       /* q, sent, and keys or values, where they do not end with a whole side */
    long stride;
    const Tiles *tiles;
    Ahead *ahead;
} Room;

INLINE long place(const Strides *strides, const Item *item, long row) {
    return item->outer * strides->outer + item->inner * strides->inner + row * strides->row;
}

INLINE Rows rows_of(const float *start, const Strides *strides, const Item *item, long row) {
    return (Rows){start + place(strides, item, row), strides->row};
}

/* Vectors that end with a whole side: they themselves, or a copy. */
INLINE Rows lined(Rows rows, long count, long size, float *room) {
    const long wide = up(size, SIDE);
    if (size == wide) return rows;
    for (long i = 0; i < count; i++)
        memcpy(room + i * wide, rows.at + i * rows.row, size * sizeof(float));
    return (Rows){room, wide};
}

/* ---- products ------------------------------------------------------------------------------ */

INLINE void turn(const Room *room, Rows keys, long count, long size, Side *to) {
    for (long j = 0; j < count; j += SIDE, to += size) {
        const float *from = keys.at + j * keys.row;
        const long some = least(count - j, SIDE);
        long d = 0;
        for (; some == SIDE && d + SIDE <= size; d += SIDE)
            room->tiles->turn(from + d, keys.row, to + d);
        for (; d < size; d++)
            for (long i = 0; i < SIDE; i++)
                ((float *)(to + d))[i] = i < some ? from[i * keys.row + d] : 0.0f;
    }
}

INLINE void compare(const Room *room, Rows rows, long count, const Side *turned, long size, Span span,
                    float *to) {
    for (long j = span.first, sides; j < span.end; j += sides * SIDE) {
        sides = next_sides(span.end - j);
        for (long i = 0; i < count; i += ROWS) {
            const float *each[ROWS]; /* a row too many is the last one again */
            for (int r = 0; r < ROWS; r++) each[r] = rows.at + least(i + r, count - 1) * rows.row;
            room->tiles->compare[sides - 1](each, turned + j / SIDE * size, size,
                                            to + i * room->stride + j, room->stride);
            ask_ahead(room->ahead);
        }
    }
}

INLINE void add_across(const Room *room, Terms terms, long wide, Sums to, int fresh) {
    for (long n = 0, sides; n < wide; n += sides * SIDE) {
        sides = next_sides(wide - n);
        room->tiles->add[sides - 1](&terms, n, to.at + n, to.row, fresh);
        ask_ahead(room->ahead);
    }
}

INLINE void put(Sums from, long count, long size, const float *shares, Sums to) {
    for (long i = 0; i < count; i++) {
        const float share = shares ? shares[i] : 1.0f;
#pragma omp simd
        for (long n = 0; n < size; n++) to.at[i * to.row + n] = share * from.at[i * from.row + n];
    }
}

/* Each row's sum of vectors by its weights. Not over all at once: some vectors are read for all rows
 * before they leave the cache, and a sum of few is more exact. Few that fill whole tiles are summed
 * where they belong. */
INLINE void read_rows(const Room *room, const float *weights, long count, Rows x, Span span,
                      long size, const float *shares, Sums to) {
    const long wide = up(size, SIDE), seen = span.end - span.first;
    const int there = size == wide && count % ROWS == 0 && seen > 0 && seen <= LONG;
    const Sums sums = there ? to : (Sums){room->sums, wide};
    if (seen <= 0) memset(room->sums, 0, count * wide * sizeof(float));
    for (long from = span.first; from < span.end; from += LONG)
        for (long i = 0; i < count; i += ROWS) {
            const Terms terms = {weights + i * room->stride, x.at, room->stride, 1, x.row,
                                 from, least(from + LONG, span.end), there && shares ? shares + i : NULL};
            add_across(room, terms, wide, (Sums){sums.at + i * sums.row, sums.row}, from == span.first);
        }
    if (!there) put(sums, count, size, shares, to);
}

/* Each key's sum of the rows' vectors by their weights. */
INLINE void send_to_keys(const Room *room, const float *weights, long count, Rows x, Span span,
                         long wide, Sums to, int fresh) {
    for (long j = span.first; j < span.end; j += ROWS) {
        const Terms terms = {weights + j, x.at, 1, room->stride, x.row, 0, count, NULL};
        add_across(room, terms, wide, (Sums){to.at + j * to.row, to.row}, fresh);
    }
}

/* ---- spans --------------------------------------------------------------------------------- */

INLINE Span span_of(const Dots *d, const Item *item, long row) {
    if (!d->first) return (Span){0, d->keys};
    const long at = place(&d->of_span, item, item->from + row);
    return (Span){d->first[at] < 0 ? 0 : d->first[at], least(d->end[at], d->keys)};
}

/* What all rows of a block see between them, in whole sides. */
INLINE Span seen_by_some(const Dots *d, const Item *item) {
    Span all = {d->keys, 0};
    for (long i = 0; i < (d->first ? item->count : 1); i++) {
        const Span own = span_of(d, item, i);
        if (own.first >= own.end) continue;
        all.first = least(all.first, own.first);
        all.end = own.end > all.end ? own.end : all.end;
    }
    return (Span){all.first / SIDE * SIDE, up(all.end, SIDE)};
}

/* ---- a block of rows ----------------------------------------------------------------------- */

INLINE void forth(const Dots *d, const Item *item, const Room *room) {
    const Span all = seen_by_some(d, item);
    const long at = (item->outer * d->inner + item->inner) * d->rows + item->from;
    float shares[TALL], most;
    compare(room, item->q, item->count, room->k, d->size, all, room->weights);
    for (long i = 0; i < item->count; i++) {
        float *scores = room->weights + i * room->stride;
        const Span own = span_of(d, item, i);
        shares[i] = weigh(scores, own, d->factor, &most);
        if (d->first) hide(scores, own, all);
        if (d->kept == SHARES) d->most[at + i] = most, d->share[at + i] = shares[i];
        if (d->kept == WEIGHTS)
            keep(scores, shares[i], all, d->weights + (at + i) * regard_padded(d->keys));
    }
    read_rows(room, room->weights, item->count, item->v, (Span){all.first, least(all.end, d->keys)},
              d->wide, shares,
              (Sums){d->context + place(&d->of_context, item, item->from), d->of_context.row});
}

INLINE void back(const Dots *d, const Item *item, const Room *room) {
    const Span all = seen_by_some(d, item);
    const long size = up(d->size, SIDE), wide = up(d->wide, SIDE), stride = room->stride;
    const long at = (item->outer * d->inner + item->inner) * d->rows + item->from;
    const int fresh = !item->from && !d->first;
    if (d->kept == SHARES) compare(room, item->q, item->count, room->k, d->size, all, room->weights);
    compare(room, item->sent, item->count, room->v, d->wide, all, room->sent);
    for (long i = 0; i < item->count; i++) {
        float *weights = room->weights + i * stride, *sent = room->sent + i * stride;
        const Span own = span_of(d, item, i);
        if (d->kept == WEIGHTS)
            keep(d->weights + (at + i) * regard_padded(d->keys), 1.0f, all, weights);
        else
            weigh_again(weights, own, d->factor, d->most[at + i], d->share[at + i]);
        to_scores(weights, sent, own, d->factor);
        if (d->first) hide(weights, own, all), hide(sent, own, all);
    }
    if (d->to_v)
        send_to_keys(room, room->weights, item->count, item->sent, all, wide, item->to_v, fresh);
    if (d->to_k)
        send_to_keys(room, room->sent, item->count, item->q, all, size, item->to_k, fresh);
    if (d->to_q)
        read_rows(room, room->sent, item->count, item->k, (Span){all.first, least(all.end, d->keys)},
                  d->size, NULL, (Sums){d->to_q + place(&d->of_to_q, item, item->from), d->of_to_q.row});
}

/* ---- items --------------------------------------------------------------------------------- */

/* While this item is worked on, have the next one brought near, unless it is too long to stay so. */
INLINE void aim(const Dots *d, const Item *next, Ahead *ahead) {
    ahead->count = ahead->which = 0;
    if (d->keys > NEAR) return;
#define AIM(name, rows, size) \
    if (d->name) ahead_of(ahead, d->name + place(&d->of_##name, next, 0), d->of_##name.row, rows, size)
    AIM(k, d->keys, d->size);
    AIM(v, d->keys, d->wide);
    AIM(q, d->rows, d->size);
    AIM(sent, d->rows, d->wide);
    AIM(context, d->rows, d->wide);
    AIM(to_q, d->rows, d->size);
    AIM(to_k, d->keys, d->size);
    AIM(to_v, d->keys, d->wide);
    const long tiles = up(d->rows, ROWS) / ROWS * (up(d->keys, TILE) + up(d->size, TILE)) / TILE;
    ahead_within(ahead, d->back ? tiles * 5 / 2 : tiles);
}

INLINE Item numbered(const Dots *d, long number) {
    return (Item){.outer = number / d->inner, .inner = number % d->inner};
}

/* Keys and values as tiles want them, unless they are those of the item before. */
INLINE Item opened(const Dots *d, const Room *room, long number, const float *before[2]) {
    Item item = numbered(d, number);
    item.k = rows_of(d->k, &d->of_k, &item, 0), item.v = rows_of(d->v, &d->of_v, &item, 0);
    if (item.k.at != before[0] && !(d->back && d->kept == WEIGHTS))
        turn(room, item.k, d->keys, d->size, room->k);
    if (item.v.at != before[1] && d->back) turn(room, item.v, d->keys, d->wide, room->v);
    before[0] = item.k.at, before[1] = item.v.at;
    if (d->back)
        item.k = lined(item.k, d->keys, d->size, room->lined[2]);
    else
        item.v = lined(item.v, d->keys, d->wide, room->lined[2]);
    return item;
}

typedef struct {
    const Dots *dots;
    long from, until; /* rows, counted over all items; on the way back items */
    int number, failed;
} Job;

INLINE void go_forth(const Job *job, const Room *room) {
    const Dots *d = job->dots;
    const float *before[2] = {NULL, NULL};
    Item item = {0};
    for (long at = job->from, last = -1; at < job->until; at += item.count) {
        const long number = at / d->rows, end = least((number + 1) * d->rows, job->until);
        if (number != last) {
            const Item next = numbered(d, number + 1);
            item = opened(d, room, number, before), last = number;
            if (end < job->until) aim(d, &next, room->ahead);
        }
        item.from = at % d->rows, item.count = least(end - at, TALL);
        item.q = rows_of(d->q, &d->of_q, &item, item.from);
        forth(d, &item, room);
    }
}

/* What was sent to an item's keys or values: set, or added to a sum of this thread's own. */
INLINE void pay(Sums sums, long count, long size, Sums to, int shared) {
    if (!shared) put(sums, count, size, NULL, to);
    for (long j = 0; shared && j < count; j++)
#pragma omp simd
        for (long n = 0; n < size; n++) to.at[j * to.row + n] += sums.at[j * sums.row + n];
}

/* Can an item's sums be made where they belong? One block of rows makes all of them then. */
INLINE int there(const Dots *d, long size, long slab) {
    return !slab && !d->first && d->rows > 0 && d->rows <= TALL && size % SIDE == 0 && d->keys % SIDE == 0;
}

/* Where this thread's sums of an item belong; nowhere if they are not wanted. */
INLINE Sums sums_of(float *start, const Strides *strides, const Item *item, long slab) {
    return (Sums){start ? start + place(strides, item, 0) + slab : NULL, strides->row};
}

INLINE void go_back(const Job *job, const Room *room) {
    const Dots *d = job->dots;
    const long keys = up(d->keys, SIDE), size = up(d->size, SIDE), wide = up(d->wide, SIDE);
    const float *before[2] = {NULL, NULL};
    for (long number = job->from; number < job->until; number++) {
        Item item = opened(d, room, number, before);
        const Item next = numbered(d, number + 1);
        if (number + 1 < job->until) aim(d, &next, room->ahead);
        if (d->first || !d->rows) { /* some keys may be seen by no row */
            memset(room->to_k, 0, keys * size * sizeof(float));
            memset(room->to_v, 0, keys * wide * sizeof(float));
        }
        const Sums to_k = sums_of(d->to_k, &d->of_to_k, &item, job->number * d->slab_k);
        const Sums to_v = sums_of(d->to_v, &d->of_to_v, &item, job->number * d->slab_v);
        const int k_there = there(d, d->size, d->slab_k), v_there = there(d, d->wide, d->slab_v);
        item.to_k = k_there ? to_k : (Sums){room->to_k, size};
        item.to_v = v_there ? to_v : (Sums){room->to_v, wide};
        for (item.from = 0; item.from < d->rows; item.from += TALL) {
            item.count = least(d->rows - item.from, TALL);
            item.q = rows_of(d->q, &d->of_q, &item, item.from);
            item.q = lined(item.q, item.count, d->size, room->lined[0]);
            item.sent = rows_of(d->sent, &d->of_sent, &item, item.from);
            item.sent = lined(item.sent, item.count, d->wide, room->lined[1]);
            back(d, &item, room);
        }
        if (d->to_k && !k_there) pay(item.to_k, d->keys, d->size, to_k, d->slab_k > 0);
        if (d->to_v && !v_there) pay(item.to_v, d->keys, d->wide, to_v, d->slab_v > 0);
    }
}

/* ---- threads ------------------------------------------------------------------------------- */

INLINE void go(const Job *job, const Room *room) {
    if (job->dots->back)
        go_back(job, room);
    else
        go_forth(job, room);
}

static void work(void *given) {
    Job *job = given;
    const Dots *d = job->dots;
    const long keys = up(d->keys, SIDE), size = up(d->size, SIDE), wide = up(d->wide, SIDE);
    const long widest = size > wide ? size : wide, stride = keys + SIDE, back = d->back;
    Ahead ahead = {0};
    Room room = {.stride = stride, .tiles = regard_gemm_tiles(), .ahead = &ahead};
    const struct {
        float **part;
        long needed;
    } parts[] = {
        {(float **)&room.k, keys * d->size}, {(float **)&room.v, back * keys * d->wide},
        {&room.weights, TALL * stride},      {&room.sent, back * TALL * stride},
        {&room.sums, TALL * widest},         {&room.to_k, back * keys * size},
        {&room.to_v, back * keys * wide},    {&room.lined[0], back * TALL * size},
        {&room.lined[1], back * TALL * wide}, {&room.lined[2], keys * widest},
    };
    long all = 0;
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) all += up(parts[n].needed, SIDE);
    float *start = regard_alloc(sizeof(Side), all * sizeof(float)), *at = start;
    job->failed = !start;
    if (!start) return;
    for (size_t n = 0; n < sizeof parts / sizeof *parts; n++)
        *parts[n].part = at, at += up(parts[n].needed, SIDE);
    go(job, &room);
    free(start);
}

/* From no numbers there is no way to the next. */
INLINE Strides from(const void *start, Strides strides) { return start ? strides : (Strides){0}; }

static Dots grounded(const Dots *given) {
    Dots d = *given;
    d.of_q = from(d.q, d.of_q), d.of_k = from(d.k, d.of_k), d.of_v = from(d.v, d.of_v);
    d.of_sent = from(d.sent, d.of_sent), d.of_context = from(d.context, d.of_context);
    return d;
}

/* Returns 1 if there was no memory. */
int regard_dot_softmax(const Dots *given, int threads) {
    Job jobs[MOST_THREADS];
    const Dots own = grounded(given), *dots = &own;
    const long items = dots->outer * dots->inner, total = dots->back ? items : items * dots->rows;
    int failed = 0;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > total) threads = total > 0 ? (int)total : 1;
    for (int t = 0; t < threads; t++)
        jobs[t] = (Job){dots, total * t / threads, total * (t + 1) / threads, t, 0};
    regard_parallel(work, jobs, sizeof(Job), threads);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    return failed;
}
