#pragma once
/* A JSON document that was read with json_parse(), changed, and is written back. Pure. */
#include <cjson/cJSON.h>
#include "fs/tree/bytes.h"

/* Compact text; numbers keep the digits they were written with. One new reference. Changes `doc` (numbers become raw
 * text), so print it last. */
struct bytes *document_print(cJSON *doc);
