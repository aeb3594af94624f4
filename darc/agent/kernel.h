/* In a kernel: which tasks count, and what a pointer is. Part of agent.c, whose rules hold here. */

static inline int is_task(const control *ctl)
{
    return !(per_cpu(ctl->preempt_at) & ctl->not_task);
}

/* The id of the running task; 0 in an interrupt. */
static inline u32 running_task(const control *ctl)
{
    return is_task(ctl) ? *(const u32 *)(per_cpu(ctl->current_at) + ctl->id_of) : 0;
}

/* In a kernel: is this one of the tasks to watch, and not an interrupt that came to it? */
static inline int is_watched(const control *ctl)
{
    if (!(ctl->task_mask[0] | ctl->task_mask[1]))
        return 1;
    const u64 *task = (const u64 *)(per_cpu(ctl->current_at) + ctl->task_at);
    return (task[0] & ctl->task_mask[0]) == ctl->task_value[0]
           && (!ctl->task_mask[1] || (task[1] & ctl->task_mask[1]) == ctl->task_value[1])
           && is_task(ctl);
}

static inline int is_kernel_pointer(u64 value)
{
    return (long)value < -4096; /* neither null nor an error number */
}
