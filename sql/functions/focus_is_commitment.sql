-- Whether a FOCUS line is about a Savings Plan or a reservation at work: what it covers, leaves unused, or costs.
-- over: aws_focus_line_item
coalesce(
    commitment_discount_id is not null and charge_category in ('Usage', 'Purchase')
    and charge_class is distinct from 'Correction'
    and usage_kind_of(coalesce(x_usage_type, sku_meter, '')) <> 'CapacityBlockFee',
    false
)
