#include "controller/policy/document.h"

/* json_parse() keeps the text of a number that a double cannot hold. Recursion is bounded by its depth limit. */
static void keep_digits(cJSON *item)
{
    if (cJSON_IsNumber(item) && item->valuestring)
        item->type = (item->type & ~0xFF) | cJSON_Raw;
    cJSON *child;
    cJSON_ArrayForEach(child, item) keep_digits(child);
}

struct bytes *document_print(cJSON *doc)
{
    keep_digits(doc);
    char *text = cJSON_PrintUnformatted(doc);
    struct bytes *b = bytes_from_string(text);
    cJSON_free(text);
    return b;
}
