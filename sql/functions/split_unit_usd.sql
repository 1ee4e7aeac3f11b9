-- What one weighted unit of a machine costs an hour under split cost allocation; null where its size is unknown.
-- args: cost, hours, accelerator_count, vcpu_count, memory_gib
-- unit: usd
-- AWS fixes the weights (facts aws-billing 4.4): 9 an accelerator, 0.9 a vCPU, 0.1 a GiB; without accelerators 9 and 1.
cast(cast(cost as double) / nullif(cast(hours as double) * case when accelerator_count > 0
    then 9 * accelerator_count + 0.9 * vcpu_count + 0.1 * memory_gib
    else 9 * vcpu_count + memory_gib end, 0) as decimal(20, 10))
