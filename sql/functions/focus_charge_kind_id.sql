-- The kind of charge a FOCUS line is: a digest of all attributes of a charge (stg_aws__charge_kind).
-- args: line
'focus ' || md5(concat_ws(chr(31), line.payer_account_id, strftime(line.billing_month, '%Y-%m-%d'), line.invoice_id,
    line.billing_entity, line.invoice_issuer, line.billing_currency, line.charge_category,
    coalesce(line.charge_type, '(null)'), line.effective_rule, line.service, line.region_id,
    coalesce(line.accelerator_family, '(null)'), coalesce(line.market, '(null)'),
    coalesce(kept_description(line.effective_rule, line.charge_description), '(null)'),
    coalesce(line.commitment_eligibility, '(null)'), coalesce(line.bedrock_meter_id, '(null)')))
