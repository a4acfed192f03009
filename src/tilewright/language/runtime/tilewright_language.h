/* Texts to tokens and back, and which token follows: whole numbers only, no memory but the caller's.

   Tables come from the tokenizer's file (NAME_words.h). */
#ifndef TILEWRIGHT_LANGUAGE_H
#define TILEWRIGHT_LANGUAGE_H

#include <stdint.h>
#include <string.h>

struct tw_merge {
    int32_t left, right, rank, made;
};

/* So many bytes of a set; `last` where an alternative ends. */
struct tw_item {
    uint8_t set[32];
    uint8_t least, many, last;
};

struct tw_words {
    const char *bytes;     /* of all tokens, one behind the other */
    const uint32_t *start; /* where each begins, and where the last ends */
    int32_t count, end;    /* `end` is the token that ends a text, or -1 */
    const int32_t *of_byte;
    const struct tw_merge *merges; /* in the order of their pairs */
    int32_t merge_count;
    const struct tw_item *items;
    int32_t item_count;
};

static inline int tw_in(const struct tw_item *item, unsigned char byte) {
    return item->set[byte >> 3] >> (byte & 7) & 1;
}

/* How many bytes the first alternative takes that fits; 0 where none does. */
static int tw_piece(const struct tw_words *words, const unsigned char *text, int size) {
    int taken = 0, fits = 1;
    for (int i = 0; i < words->item_count; i++) {
        const struct tw_item *const item = &words->items[i];
        int count = 0;
        while (fits && taken + count < size && (item->many || count < 1) && tw_in(item, text[taken + count]))
            count++;
        fits = fits && count >= item->least;
        taken += count;
        if (item->last) {
            if (fits && taken)
                return taken;
            taken = 0;
            fits = 1;
        }
    }
    return 0;
}

static const struct tw_merge *tw_merge_of(const struct tw_words *words, int32_t left, int32_t right) {
    int32_t low = 0, high = words->merge_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const struct tw_merge *const found = &words->merges[middle];
        if (found->left == left && found->right == right)
            return found;
        if (found->left < left || (found->left == left && found->right < right))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* Merges the tokens of one piece in place; how many are left. */
static int tw_merged(const struct tw_words *words, int32_t *tokens, int count) {
    for (;;) {
        const struct tw_merge *best = 0;
        int at = 0;
        for (int i = 0; i + 1 < count; i++) {
            const struct tw_merge *const found = tw_merge_of(words, tokens[i], tokens[i + 1]);
            if (found && (!best || found->rank < best->rank)) {
                best = found;
                at = i;
            }
        }
        if (!best)
            return count;
        tokens[at] = best->made;
        count--;
        for (int i = at + 1; i < count; i++)
            tokens[i] = tokens[i + 1];
    }
}

/* The tokens of a text, of which there is room for `size`: how many, or -1 - i where byte i is in no token. */
static int tw_encode(const struct tw_words *words, const unsigned char *text, int size, int32_t *tokens) {
    int made = 0;
    for (int at = 0; at < size;) {
        int count = tw_piece(words, text + at, size - at);
        if (!count)
            for (count = 1; at + count < size && !tw_piece(words, text + at + count, size - at - count);)
                count++;
        for (int i = 0; i < count; i++) {
            tokens[made + i] = words->of_byte[text[at + i]];
            if (tokens[made + i] < 0)
                return -1 - (at + i);
        }
        made += tw_merged(words, tokens + made, count);
        at += count;
    }
    return made;
}

/* A number without sign in digits, times ten to the power of `decimals`; false where a text is something else. */
static int tw_number(const char *text, int decimals, uint64_t *value) {
    uint64_t found = 0;
    int digits = 0, behind = -1;
    for (; *text && behind < decimals; text++) {
        if (*text == '.' && behind < 0 && decimals) {
            behind = 0;
            continue;
        }
        if (*text < '0' || *text > '9' || found > (UINT64_MAX - 9) / 10)
            return 0;
        found = found * 10 + (uint64_t)(*text - '0');
        digits++;
        behind += behind >= 0;
    }
    for (; *text; text++) /* further digits are left out */
        if (*text < '0' || *text > '9' || !decimals)
            return 0;
    for (behind = behind < 0 ? 0 : behind; behind < decimals; behind++) {
        if (found > UINT64_MAX / 10)
            return 0;
        found *= 10;
    }
    *value = found;
    return digits > 0;
}

/* A logit that is a float, in units of 1 / 256, without floating-point instructions: rounded half up. */
static inline int32_t tw_units(const void *logit) {
    uint32_t bits;
    memcpy(&bits, logit, sizeof bits);
    const int negative = bits >> 31 != 0, shift = (int)(bits >> 23 & 255) - 142;
    const uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    uint32_t whole = 0;
    if (shift >= 0)
        whole = shift < 7 ? mantissa << shift : 0x40000000u;
    else if (shift > -26)
        whole = (mantissa + (UINT32_C(1) << (-shift - 1)) - (uint32_t)negative) >> -shift;
    return negative ? -(int32_t)whole : (int32_t)whole;
}

struct tw_sampler {
    uint64_t state;
    uint32_t factor; /* octaves of a unit of the logits, in 2^-16; 0 takes the likeliest token */
    uint32_t share;  /* the part of all probability that tokens are drawn from, in 2^-16 */
};

/* 32 random bits (PCG: a congruence, whose highest bits say how its others are turned). */
static uint32_t tw_random(struct tw_sampler *sampler) {
    const uint64_t old = sampler->state;
    sampler->state = old * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint32_t mixed = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);
    return mixed >> turn | mixed << (-turn & 31);
}

static struct tw_sampler tw_sampler_of(uint64_t seed, uint32_t factor, uint32_t share) {
    struct tw_sampler made = {seed * 2 + 1, factor, share};
    (void)tw_random(&made);
    return made;
}

/* Octaves of a unit of the logits at a temperature in 10^-9, in 2^-16; 0, which takes the likeliest token, at 0. */
static uint32_t tw_factor(uint64_t temperature, uint32_t units) {
    const uint64_t octave = UINT64_C(94548462199699106) / units; /* 65536 / log(2), in 10^-12 */
    return temperature ? (uint32_t)((octave * 10 + temperature * 5000) / (temperature * 10000)) : 0;
}

/* The share of all probability, given in 10^-9. */
static uint32_t tw_share(uint64_t part) {
    const uint64_t share = (part * 65536 + 500000000) / 1000000000;
    return share < 1 ? 1 : (uint32_t)share;
}

static inline uint32_t tw_weight(const struct tw_sampler *sampler, const uint32_t *octaves, int32_t below) {
    const uint32_t distance = (uint32_t)(below < 65535 ? below : 65535) * sampler->factor;
    const uint32_t halvings = distance >> 16;
    return octaves[distance >> 8 & 255] >> (halvings < 31 ? halvings : 31);
}

/* The sum of all weights that are at least so large. */
static uint64_t tw_kept(const struct tw_sampler *sampler, const uint32_t *octaves, const int32_t *logits, int count,
                        int32_t top, uint32_t least) {
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) {
        const uint32_t weight = tw_weight(sampler, octaves, top - logits[i]);
        sum += weight >= least ? weight : 0;
    }
    return sum;
}

/* The next token. `octaves` has 2^24 times the powers of one half from 0 to 1, in steps of 1 / 256. */
static int32_t tw_pick(struct tw_sampler *sampler, const uint32_t *octaves, const int32_t *logits, int count) {
    int32_t top = 0;
    for (int i = 1; i < count; i++)
        top = logits[i] > logits[top] ? i : top;
    if (!sampler->factor)
        return top;
    const int32_t most = logits[top];
    const uint64_t wanted = tw_kept(sampler, octaves, logits, count, most, 1) * sampler->share >> 16;
    uint32_t low = 1, high = UINT32_C(1) << 24;
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if (tw_kept(sampler, octaves, logits, count, most, middle) >= wanted)
            low = middle;
        else
            high = middle - 1;
    }
    const uint64_t kept = tw_kept(sampler, octaves, logits, count, most, low);
    /* kept has at most 44 bits: the product is made of two. */
    const uint64_t random = tw_random(sampler);
    const uint64_t target = (random * (kept >> 32)) + (random * (kept & 0xffffffffu) >> 32);
    uint64_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        const uint32_t weight = tw_weight(sampler, octaves, most - logits[i]);
        sum += weight >= low ? weight : 0;
        if (sum > target)
            return i;
    }
    return top;
}

#endif
