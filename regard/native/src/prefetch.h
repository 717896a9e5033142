/* Prefetch what is needed next, a little at each tile, so that it arrives while others are computed. */

#ifndef REGARD_PREFETCH_H
#define REGARD_PREFETCH_H

#include "common.h"

enum { CACHE_LINE = 64, MAX_PREFETCHES = 7 };

/* Rows still to be prefetched. */
typedef struct {
    const char *at;                /* the current row */
    long stride, rows, line, lines; /* bytes to the next row, rows left; lines done, lines a row */
} PrefetchRows;

typedef struct {
    PrefetchRows parts[MAX_PREFETCHES];
    long count, current, lines_per_tile;
} Prefetch;

/* Prefetch so many rows of so many floats, too. */
INLINE void prefetch_rows(Prefetch *prefetch, const float *from, long stride, long rows, long size) {
    const long bytes = sizeof(float), lines = (size * bytes + CACHE_LINE - 1) / CACHE_LINE;
    if (rows < 1 || lines < 1) return;
    PrefetchRows *part = prefetch->parts + prefetch->count++;
    *part = (PrefetchRows){(const char *)from, stride * bytes, rows, 0, lines};
    if (part->stride == lines * CACHE_LINE) part->lines *= rows, part->rows = 1; /* contiguous */
}

/* Spread all of it over so many tiles. */
INLINE void prefetch_over(Prefetch *prefetch, long tiles) {
    long all = 0;
    for (long n = 0; n < prefetch->count; n++) all += prefetch->parts[n].rows * prefetch->parts[n].lines;
    prefetch->lines_per_tile = tiles > 0 ? (all + tiles - 1) / tiles : all;
}

/* One tile's share; nothing if there is nothing to prefetch, NULL. */
INLINE void prefetch_some(Prefetch *prefetch) {
    long left = prefetch ? prefetch->lines_per_tile : 0;
    while (left > 0 && prefetch->current < prefetch->count) {
        PrefetchRows *part = prefetch->parts + prefetch->current;
        const char *at = part->at + part->line * CACHE_LINE;
        const long some = min_long(left, part->lines - part->line);
        for (long n = 0; n < some; n++) __builtin_prefetch(at + n * CACHE_LINE, 0, 2);
        left -= some, part->line += some;
        if (part->line < part->lines) return;
        part->line = 0, part->at += part->stride;
        if (!--part->rows) prefetch->current++;
    }
}

#endif
