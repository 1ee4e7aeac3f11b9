-- Whether a FOCUS line is about a Savings Plan or a reservation at work: what it covers, leaves unused, or costs. One of
-- another provider is none.
-- args: line
coalesce(
    focus_commitment_id(line) is not null and not is_other_provider(focus_billing_entity(line))
    and line.charge_category in ('Usage', 'Purchase') and line.charge_class is distinct from 'Correction'
    and usage_kind_of(coalesce(line.x_usage_type, line.sku_meter, '')) <> 'CapacityBlockFee',
    false
)
