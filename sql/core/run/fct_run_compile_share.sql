-- One row per billed run that a precompile run's cost moves to or from once the runs that load its cached NEFFs share it.
-- The precompile run gives all it cost, each run that used it takes an equal part: what moves sums to nothing, so totals stay.
with used as (
    select
        maker.run_id as compile_run_id, maker.billing_currency, maker.effective_cost_usd, run.run_id,
        row_number() over (partition by maker.run_id order by run.started_at, run.run_id) as part_no,
        count(*) over (partition by maker.run_id) as part_count
    from fct_run as run
    join dim_run on dim_run.run_id = run.run_id
    join fct_run as maker on maker.run_id = dim_run.compile_run_id and maker.billing_currency = run.billing_currency
    -- One that only compiles serves others; what it loaded itself it does not pass on.
    where maker.purpose = 'compile_only' and run.purpose <> 'compile_only' and maker.is_billed and run.is_billed
),

moved as (
    select run_id, billing_currency, piece_usd(effective_cost_usd, part_no - 1, part_no, part_count) as compile_shared_usd
    from used

    union all

    select compile_run_id, billing_currency, - max(effective_cost_usd)
    from used
    group by compile_run_id, billing_currency
)

select run_id, billing_currency, sum(compile_shared_usd) as compile_shared_usd
from moved
group by run_id, billing_currency
