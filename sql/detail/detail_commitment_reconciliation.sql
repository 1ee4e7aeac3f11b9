-- One row per commitment on a bill or in AWS's own answer: its cost an hour and its end in each, and how they differ.
-- Contracts that charges draw down (FOCUS 1.3 on) and neither these nor the declared agreements have are kind `contract`.
-- What a reservation costs an hour is that of its newest month, for FOCUS states it use by use.
with newest as (
    select *,
        row_number() over (partition by payer_account_id, billing_currency, commitment_discount_id, commitment_kind
            order by fee_started_at desc, fee_ended_at desc) as rank_no,
        greatest(unix_ms(fee_ended_at) - unix_ms(fee_started_at), 3600000) as fee_ms,
        sum(commitment_cost_usd) over month as month_cost_usd,
        greatest(max(unix_ms(fee_ended_at)) over month - min(unix_ms(fee_started_at)) over month, 3600000) as month_ms
    from stg_aws__commitment_fee
    window month as (partition by billing_month, payer_account_id, billing_currency, commitment_discount_id,
        commitment_kind)
),

bill as (
    select
        payer_account_id, billing_currency, commitment_discount_id, commitment_kind,
        commitment_key(commitment_discount_id) as commitment_key,
        case when commitment_kind = 'reserved_instance' then piece_usd(month_cost_usd, 0, 3600000, month_ms)
            else piece_usd(commitment_cost_usd, 0, 3600000, fee_ms) end as commitment_per_hour_usd,
        ended_at
    from newest
    where rank_no = 1

    union all

    select distinct total.payer_account_id, total.billing_currency, total.contract_id, 'contract',
        commitment_key(total.contract_id), cast(null as decimal(38, 10)), cast(null as timestamp)
    from stg_aws__invoice_total as total
    left join newest on newest.rank_no = 1
        and commitment_key(newest.commitment_discount_id) = commitment_key(total.contract_id)
    left join stg_aws__commitment as answer on answer.commitment_key = commitment_key(total.contract_id)
    left join declared_agreement as agreement on agreement.agreement_name = total.contract_id
    where total.contract_id <> '' and newest.commitment_discount_id is null and answer.commitment_key is null
        and agreement.agreement_name is null and not is_other_provider(total.billing_entity)
),

joined as (
    select
        bill.payer_account_id,
        coalesce(bill.billing_currency, answer.currency) as billing_currency,
        coalesce(bill.commitment_discount_id, answer.commitment_discount_id) as commitment_id,
        coalesce(bill.commitment_kind, answer.commitment_kind) as commitment_kind,
        bill.commitment_key is not null as is_on_bill, answer.commitment_key is not null as is_in_answer,
        answer.commitment_key is not null and answer.commitment_kind is null as is_unread, answer.state,
        bill.commitment_per_hour_usd as bill_per_hour_usd, answer.commitment_per_hour_usd as declared_per_hour_usd,
        bill.ended_at as bill_ended_at, answer.ended_at as declared_ended_at,
        bill.commitment_kind <> answer.commitment_kind as is_other_kind,
        bill.billing_currency <> answer.currency as is_other_currency
    from bill
    full join stg_aws__commitment as answer on answer.commitment_key = bill.commitment_key
)

select
    payer_account_id, billing_currency, commitment_id, commitment_kind, state, bill_per_hour_usd, declared_per_hour_usd,
    case when is_other_currency then null else declared_per_hour_usd - bill_per_hour_usd end as difference_usd,
    bill_ended_at, declared_ended_at,
    case
        when not is_in_answer then 'on the bill only'
        when is_unread then 'cannot be read'
        when not is_on_bill and coalesce(state, 'active') = 'active' then 'active, but on no bill'
        when not is_on_bill then 'not active, on no bill'
        when is_other_kind then 'the kinds differ'
        when is_other_currency then 'the currencies differ'
        when bill_per_hour_usd is null then 'its cost is not on the bill'
        when abs(declared_per_hour_usd - bill_per_hour_usd) > 0.005 then 'the commitments differ'
        when abs(date_diff('hour', bill_ended_at, declared_ended_at)) > 24 then 'the ends differ'
        else 'agrees'
    end as reconciliation_status
from joined
