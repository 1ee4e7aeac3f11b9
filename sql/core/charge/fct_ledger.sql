-- One row per piece of everything on the bill: each dollar once, in one bucket, with its run and its team.
-- Everything that adds up money reads this table. A piece is a day's sum of whole lines, or a part of one line that is
-- shared out.
with paid as (
    select distinct coalesce(capacity_reservation_id(resource_id), resource_id) as paid_id, usage_date
    from fct_capacity_block_piece
    where resource_id is not null and charge_category <> 'Refund'
),

-- Hours of a Capacity Block are free on the bill: until the fee is there that pays for them, their cost is unknown.
part as (
    select piece.*, is_unpaid_use(piece.market, piece.charge_category, piece.piece_kind, piece.bucket,
            piece.accelerator_hours, paid.paid_id) as is_unpaid
    from fct_ledger_piece as piece
    left join paid on is_paid_by_block(paid, piece)
),

piece as (
    select
        billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity,
        invoice_issuer, billing_currency, piece_kind, source_name, source_file, source_row,
        cast(0 as bigint) as hour_no, piece_no, bucket, charge_category, service, region_id, accelerator_family, market,
        run_id, attempt_no, server_id, evidence, resource_id, instance_type, tag_owner, tag_team, tag_run_id, iam_principal,
        hour_started_at,
        started_ms, ended_ms, used_units, billed_units, accelerator_hours, list_cost_usd,
        case when not is_unpaid then effective_cost_usd end as effective_cost_usd, billed_cost_usd
    from part

    union all

    -- What such an hour costs itself, an operating system, is known.
    select
        billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity,
        invoice_issuer, billing_currency, piece_kind, source_name, source_file, source_row, 1, piece_no, bucket,
        charge_category, service, region_id, accelerator_family, market, run_id, attempt_no, server_id, evidence, resource_id,
        instance_type, tag_owner, tag_team, tag_run_id, iam_principal, hour_started_at, started_ms, ended_ms, 0, billed_units,
        0, null, effective_cost_usd, 0
    from part
    where is_unpaid and effective_cost_usd <> 0

    union all

    select
        billing_period, billing_month, usage_date, payer_account_id, account_id, invoice_id, billing_entity,
        invoice_issuer, billing_currency, 'block_hour', source_name, source_file, source_row, hour_no, piece_no, bucket,
        charge_category, service, region_id, accelerator_family, market, run_id, attempt_no, server_id, evidence, resource_id,
        instance_type, null, null, tag_run_id, null, hour_started_at, started_ms, ended_ms, null, null,
        0, list_cost_usd, effective_cost_usd, billed_cost_usd
    from fct_capacity_block_piece
)

select
    piece.billing_period, piece.billing_month, piece.usage_date, piece.payer_account_id, piece.account_id,
    piece.invoice_id, piece.billing_entity, piece.invoice_issuer, piece.billing_currency, piece.piece_kind,
    piece.source_name, piece.source_file, piece.source_row, piece.hour_no, piece.piece_no,
    case when provisional.run_id is not null then 'run' else piece.bucket end as bucket,
    piece.charge_category, piece.service, piece.region_id, piece.accelerator_family, piece.market,
    -- A tag alone names an unrecorded run.
    coalesce(provisional.run_id, piece.run_id) as run_id, piece.attempt_no, piece.server_id,
    case when provisional.run_id is not null then 'tag_only' else piece.evidence end as evidence,
    -- A run or a server is its declared team's; else the team is the one the line's tag named on its own day, else that of
    -- the role that called, else the account's.
    coalesce(run.team, team_name(coalesce(server.team, piece.tag_team, role.team, account.team), policy.team_spelling)) as team,
    case
        when run.team is not null then 'run' when server.team is not null then 'server' when piece.tag_team is not null then 'tag'
        when role.team is not null then 'role' when account.team is not null then 'account'
    end as team_evidence,
    piece.resource_id, piece.instance_type, piece.tag_owner, piece.tag_team, piece.tag_run_id, piece.iam_principal, piece.hour_started_at,
    piece.started_ms, piece.ended_ms, piece.used_units, piece.billed_units, piece.accelerator_hours,
    piece.list_cost_usd, piece.effective_cost_usd, piece.billed_cost_usd
from piece
cross join policy
left join dim_run as run on run.run_id = piece.run_id
left join (select server_id, max(team) as team from stg_serving__traffic group by server_id) as server
    on server.server_id = piece.server_id
left join dim_provisional_run as provisional on is_of_provisional_run(provisional, piece)
left join declared_team as role on role.holder = role_name(piece.iam_principal)
left join declared_team as account
    on account.holder = piece.account_id and piece.usage_date between account.first_date and account.last_date
