-- Whether a line gives back the upfront fee of a Savings Plan of any product: as the fee counted nothing, so does this.
-- Any other refund on a plan, of a discount for one, is money (facts aws-billing 2.1).
-- args: effective_rule, description
coalesce(effective_rule = 'refund' and description like 'Refund for one-time fee for Savings Plan ID%', false)
