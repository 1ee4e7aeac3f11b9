-- The description of a charge, kept where it alone shows what the charge is for: money returned or taken off.
-- args: effective_rule, description
case when effective_rule in ('credit', 'discount', 'refund') then description end
