/* A merge sort. Whoever includes it has, before that, the type of an item and of an order, which knows what items are
 * compared by, and
 *
 *     static int is_before(const item_t *a, const item_t *b, const order_t *order);
 *
 * No two items may be alike in that order.
 */

/* Merges the parts of from, [low, middle) and [middle, high), into to. */
static void merge(const item_t *from, item_t *to, size_t low, size_t middle, size_t high, const order_t *order)
{
    size_t left = low, right = middle;
    /* Most symbols stand in their order already: 1.35 million take 0.41 s with this, 0.64 s without. */
    int is_sorted = middle >= high || !is_before(from + middle, from + middle - 1, order);
    for (size_t at = low; at < high; at++) {
        int is_left = left < middle && (is_sorted || right >= high || !is_before(from + right, from + left, order));
        to[at] = from[is_left ? left++ : right++];
    }
}

/* Sorts the items; room is for as many. */
static void sort(item_t *items, item_t *room, size_t count, const order_t *order)
{
    item_t *from = items, *to = room;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t low = 0; low < count; low += 2 * width) {
            size_t middle = low + width < count ? low + width : count;
            size_t high = low + 2 * width < count ? low + 2 * width : count;
            merge(from, to, low, middle, high, order);
        }
        item_t *other = from;
        from = to;
        to = other;
    }
    for (size_t at = 0; from != items && at < count; at++)
        items[at] = from[at];
}
