-- Whether a bill line is of another provider than AWS, as a FOCUS bill may have; see focus_billing_entity.
-- args: billing_entity
not is_aws_name(nullif(billing_entity, ''))
