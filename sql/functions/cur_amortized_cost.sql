-- What a report line costs once upfront fees are spread over the use they buy (facts aws-billing 2.2, 2.3, 3.5).
-- Of the gross columns or, where the payer's month carries them, of their net twins.
-- args: line, has_net
-- unit: the line's currency
case
    -- Most lines, so they come first.
    when line.effective_rule = 'as_billed' or line.line_class = 'block_fee'
        then coalesce(case when has_net then line.line_item_net_unblended_cost end, line.line_item_unblended_cost,
            cost_of_an_empty_cell(line))
    when line.effective_rule = 'savings_plan' then net_or_gross(
        has_net, line.savings_plan_net_savings_plan_effective_cost, line.savings_plan_savings_plan_effective_cost)
    when line.effective_rule = 'savings_plan_unused' then net_unused_usd(
        cast(coalesce(line.savings_plan_total_commitment_to_date, 0) - coalesce(line.savings_plan_used_commitment, 0)
            as decimal(20, 10)),
        -- All Upfront pays nothing by the hour: there the ratio is that of its amortized part.
        case when has_net and line.is_unused_scaled then case when coalesce(line.line_item_unblended_cost, 0) <> 0
            then line.line_item_net_unblended_cost
            else line.savings_plan_net_amortized_upfront_commitment_for_billing_period end end,
        coalesce(nullif(line.line_item_unblended_cost, 0),
            line.savings_plan_amortized_upfront_commitment_for_billing_period))
    when line.effective_rule = 'reservation'
        then net_or_gross(has_net, line.reservation_net_effective_cost, line.reservation_effective_cost)
    when line.effective_rule = 'reservation_unused' then cast(
        net_or_gross(has_net, line.reservation_net_unused_amortized_upfront_fee_for_billing_period,
            line.reservation_unused_amortized_upfront_fee_for_billing_period)
        + net_or_gross(has_net, line.reservation_net_unused_recurring_fee, line.reservation_unused_recurring_fee)
        as decimal(20, 10))
    when line.effective_rule in ('zero', 'upfront_fee')
        or (line.effective_rule = 'fee' and line.reservation_reservation_a_r_n is not null) then 0
    when is_plan_fee_refund(line.effective_rule, line.line_item_line_item_description) then 0
    else net_or_gross(has_net, line.line_item_net_unblended_cost, line.line_item_unblended_cost)
end
