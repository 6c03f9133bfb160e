/* Constructors of what goes between the broker core and its environment. */
#include "controller/broker/broker.h"

static void clear_task(gpointer p)
{
    topic_ref_unref(((struct log_task *)p)->topic);
}

struct disk_batch *disk_batch_new(enum disk_work work, int dir)
{
    struct disk_batch *b = g_new0(struct disk_batch, 1);

    b->work = work;
    b->dir = dir;
    b->tasks = g_array_new(FALSE, TRUE, sizeof(struct log_task));
    g_array_set_clear_func(b->tasks, clear_task);
    return b;
}

struct log_task *disk_batch_add(struct disk_batch *b, struct topic_ref *topic, int32_t partition)
{
    struct log_task t = {.topic = topic_ref_ref(topic), .partition = partition};

    g_array_append_val(b->tasks, t);
    return &g_array_index(b->tasks, struct log_task, b->tasks->len - 1);
}

void disk_batch_fail(struct disk_batch *b, guint from, int err, char *why)
{
    for (guint i = from; i < b->tasks->len; i++)
        g_array_index(b->tasks, struct log_task, i).err = err;
    g_free(b->failed);
    b->failed = why;
}

void disk_batch_free(struct disk_batch *b)
{
    if (!b)
        return;
    g_array_unref(b->tasks);
    g_free(b->failed);
    g_free(b);
}

void fetch_request_free(struct fetch_request *f)
{
    if (!f)
        return;
    for (guint i = 0; i < f->partitions->len; i++)
        topic_ref_unref(g_array_index(f->partitions, struct fetch_partition, i).topic);
    g_array_unref(f->partitions);
    g_free(f);
}
