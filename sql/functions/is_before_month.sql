-- Whether time lies before the month whose bill has it, so that the month bills it late.
-- args: billing_period, ended_ms
ended_ms <= unix_ms(cast(billing_period || '-01' as timestamp))
