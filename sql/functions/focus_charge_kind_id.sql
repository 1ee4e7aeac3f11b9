-- The kind of charge a FOCUS line is: a digest of all attributes of a charge (stg_aws__charge_kind).
-- over: the lines of stg_aws__focus_line_item
'focus ' || md5(concat_ws(chr(31), payer_account_id, strftime(billing_month, '%Y-%m-%d'), invoice_id,
    billing_entity, invoice_issuer, billing_currency, charge_category, coalesce(charge_type, '(null)'), effective_rule,
    service, region_id, coalesce(accelerator_family, '(null)'), coalesce(market, '(null)'),
    coalesce(kept_description(effective_rule, charge_description), '(null)'),
    coalesce(commitment_eligibility, '(null)')))
