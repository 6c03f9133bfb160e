/* Partition states that others have written: by leaders before 2.7, which say so under /isr_change_notification
 * (KafkaController.processIsrChangeNotification), and by hand. */
#include "controller/core.h"

#define ISR_NOTIFICATIONS "/isr_change_notification"

/* The partitions that a notification names, without those that are there already. */
static void add_named(struct controller *c, const char *path, GPtrArray *partitions)
{
    struct bytes *data = NULL;
    GArray *entries = NULL;
    g_autofree char *why = NULL;
    if (c->env.get(c->env.ctx, path, &data, NULL) != ZOK) {
        return;
    }
    if (!partition_list_decode(data, &entries, &why)) {
        complain(c, EINVAL, path, "%s", why);
    }
    bytes_unref(data);
    for (guint i = 0; entries && i < entries->len; i++) {
        const struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, i);
        struct partition *p = context_partition(&c->ctx, e->topic, e->partition);
        if (p && p->scratch < 0) {
            p->scratch = 0;
            g_ptr_array_add(partitions, p);
        }
    }
    if (entries) {
        g_array_unref(entries);
    }
}

/* The state as the tree has it now, if it is for this controller to take: one of a later controller means that this one
 * is deposed and does not know it yet, and would spread that state with its own, old list of replicas. */
static bool read_current_state(struct controller *c, const struct partition *p, struct leader_and_isr *ret)
{
    if (read_partition_state(c, p, ret) != ZOK) {
        return false; /* removed: said when it is needed */
    }
    if (!election_is_outdated(c, p, ret->controller_epoch)) {
        return true;
    }
    leader_and_isr_clear(ret);
    return false;
}

/* Takes the state as the tree has it into the cache. */
static void refresh(struct controller *c, struct partition *p)
{
    struct leader_and_isr l;
    if (p->has_leadership && read_current_state(c, p, &l)) {
        partition_take_leadership(c, p, &l);
    }
}

void isr_change_notification(struct controller *c)
{
    g_autoptr(GPtrArray) names = c->env.children(c->env.ctx, ISR_NOTIFICATIONS);
    g_autoptr(GPtrArray) partitions = g_ptr_array_new();
    if (!names || names->len == 0) {
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_strconcat(ISR_NOTIFICATIONS "/", names->pdata[i], NULL);
        add_named(c, path, partitions);
    }
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        p->scratch = -1;
        refresh(c, p);
        batch_update_metadata(c, p);
    }
    batch_send(c);
    reassignment_check(c, partitions);
    fenced_delete_children(c, ISR_NOTIFICATIONS, names);
}

/* ---- the state's node itself was written, or removed, by another hand ---- */

static struct partition *find_named(const struct controller *c, const char *name)
{
    const char *slash = strrchr(name, '/');
    gint64 id;
    if (!slash || !g_ascii_string_to_signed(slash + 1, 10, 0, INT32_MAX, &id, NULL)) {
        return NULL;
    }
    g_autofree char *topic = g_strndup(name, (gsize)(slash - name));
    return context_partition(&c->ctx, topic, (int32_t)id);
}

/* Another leader, epoch or in-sync set than the controller knew: everybody is told. A state made by hand for a
 * partition that had none begins it. One of the same leader and epoch goes to `same_leader`. */
static void adopt(struct controller *c, struct partition *p, struct leader_and_isr *now, GPtrArray *same_leader)
{
    bool leader_changed = !p->has_leadership || now->leader != p->leadership.leader ||
                          now->leader_epoch != p->leadership.leader_epoch;
    partition_take_leadership(c, p, now);
    if (deletion_decides(p->topic)) {
        return;
    }
    if (leader_changed) {
        g_autoptr(GPtrArray) one = g_ptr_array_new();
        g_ptr_array_add(one, p);
        if (replica_is_online(&c->ctx, p, p->leadership.leader)) {
            batch_leader_and_isr_all(c, p, p->replicas, false);
            partition_set_status(&c->ctx, p, PARTITION_ONLINE);
        } else {
            partitions_change_state(c, one, PARTITION_OFFLINE);
        }
    }
    /* Before 2.7 it was the leader, whose notification follows; since then a hand, and the leader does not know. */
    if (leader_changed) {
        batch_update_metadata(c, p);
    } else if (broker_config_ibp_at_least(c->config, 2, 7, 2)) {
        g_ptr_array_add(same_leader, p);
    }
}

void partition_state_change(struct controller *c, GHashTable *names)
{
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    g_autoptr(GPtrArray) touched = g_ptr_array_new();
    g_autoptr(GPtrArray) same_leader = g_ptr_array_new();
    for (guint i = 0; i < sorted->len; i++) {
        struct partition *p = find_named(c, sorted->pdata[i]);
        struct leader_and_isr now;
        if (!p) {
            continue;
        }
        if (!read_current_state(c, p, &now)) {
            if (p->reassigning) {
                deletion_resume_topic(c, p->topic->ref->name); /* it may have waited for this reassignment */
            }
            continue;
        }
        if (p->has_leadership && p->leadership.partition_epoch == now.partition_epoch) {
            leader_and_isr_clear(&now); /* known already */
            continue;
        }
        adopt(c, p, &now, same_leader);
        g_ptr_array_add(touched, p);
    }
    partitions_renew(c, same_leader);
    strangers_expel(c, touched);
    batch_send(c);
    if (touched->len) {
        partitions_trigger_online(c, NULL);
        reassignment_check(c, touched);
    }
}
