/* JSON that comes in pieces: the verdict must not depend on the cuts, and must agree with the parser of whole values.
 */
#include <glib.h>
#include "controller/json/codec.h"
#include "fs/fuse/judge.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    struct judge *whole = judge_new(), *pieces = judge_new();
    enum verdict at_once, in_pieces = VERDICT_EMPTY;
    g_autofree char *why = NULL;
    cJSON *parsed;

    at_once = judge_feed(whole, input, size);
    for (size_t at = 0, step; at < size; at += step) {
        step = 1 + input[at] % 7;
        step = step < size - at ? step : size - at;
        in_pieces = judge_feed(pieces, input + at, step);
        if (in_pieces == VERDICT_IMPOSSIBLE)
            break;
    }
    FUZZ_CHECK(at_once == in_pieces);
    FUZZ_CHECK(at_once != VERDICT_IMPOSSIBLE || judge_why(whole) != NULL);
    parsed = json_parse((const char *)input, size, &why);
    /* the parser also refuses duplicate keys and numbers out of range, and never takes what is no document */
    FUZZ_CHECK(!parsed || at_once == VERDICT_COMPLETE);
    FUZZ_CHECK(parsed || why);
    cJSON_Delete(parsed);
    judge_free(whole);
    judge_free(pieces);
    return 0;
}
