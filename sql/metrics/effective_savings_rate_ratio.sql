-- What was saved of the list price, unused commitments included and never clamped (facts aws-billing 3.1); null where nothing has a list price.
-- unit: ratio   over: core.fct_savings_scope_monthly
-- args: list, used, unused
ratio(sum(list) - sum(used) - sum(unused), sum(list))
