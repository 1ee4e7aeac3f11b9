"""A served model: the cost of its servers and its Bedrock tokens, down to bill lines.

Idle time in which nothing held a machine is no single line's: what a server bears of it is a row of its own.
"""

from decimal import Decimal

from pipelines.base.dates import month_date
from pipelines.base.sql import quoted
from pipelines.engine import Engine
from pipelines.explain.query import (
    BASES,
    LEDGER,
    LINES,
    SUMS,
    Level,
    Question,
    refuse_to_add,
    unknown,
    values,
)

SERVED = "mart_inference_cost_daily"
HOURS = "detail_serving_capacity_hourly"
TOKENS = "detail_bedrock_usage_daily"
_TOKENS_ON_THE_BILL = "bucket = 'serving' and server_id is null and charge_category in ('Usage', 'Purchase')"
_BASES = ", ".join(BASES)


def for_model(engine: Engine, model: str, month: str | None, currency: str | None) -> Question:
    """What serving a model cost, of all months or one. UsageError, with similar names, for an unknown model."""
    models = values(engine, SERVED, "model", "model is not null")
    if model not in models:
        raise unknown("served model", model, models, "the models")
    of_model, period = f"model = {quoted(model)}", "true"
    if month:
        first = str(month_date(month))
        months = values(engine, SERVED, "billing_month", of_model)
        if first not in months:
            raise unknown(f"month of {model}", month, [known[:7] for known in months], "the months")
        period += f" and billing_month = date '{first}'"
    if currency:
        currencies = values(engine, SERVED, "billing_currency", f"{of_model} and {period}")
        if currency not in currencies:
            raise unknown(f"currency of {model}", currency, currencies, "the currencies")
        period += f" and billing_currency = {quoted(currency)}"
    chosen = f"{of_model} and {period}"
    order = (
        "abs(effective_cost_usd) desc, usage_date, platform, payer_account_id, account_id, region_id, tier, route, team"
    )
    rows = engine.query(f"select * from {SERVED} where {chosen} order by {order}")
    refuse_to_add(rows["billing_currency"])
    tokens = f"(select bedrock_meter_id from {TOKENS} where {chosen})"
    hour = "cast(date_trunc('hour', coalesce(hour_started_at, cast(usage_date as timestamp))) as timestamp)"
    hours = f"select server_id, hour_started_at from {HOURS} where {chosen} and billed_cost_usd is not null"
    served = f"(server_id, {hour}) in ({hours})"
    return Question(
        title=f"Model {model}" + (f", {month}" if month else ""),
        mart=SERVED,
        rows=rows,
        shown=("platform", "billed_by", "tier", "team"),
        condition=f"{period} and ({served} or ({_TOKENS_ON_THE_BILL}))",
        line_condition=f"{period} and ({served} or ({_TOKENS_ON_THE_BILL} and bedrock_meter_id in {tokens}))",
        levels=(
            Level("", ("served_by", "part"), ledger=True),
            Level("By server, or usage type of Bedrock", ("served_by", "resource_id", "part")),
        ),
        # A server's cost may be unknown where its lines have one, as on a dedicated host.
        sums={basis: basis for basis in BASES if not rows[basis].null_count()},
        compared="the daily ledger, the server-hours, the use of Bedrock",
        reads=(HOURS, TOKENS),
        stored=_stored(chosen, period),
        views=_VIEWS,
        apart=_unlike_details(engine, chosen),
        beyond="select 'the shared idle time of ' || server_id, effective_cost_usd, most_cost_usd from shared_idle "
        "where abs(effective_cost_usd) > most_cost_usd order by server_id",
    )


def _unlike_details(engine: Engine, chosen: str) -> tuple[tuple[str, Decimal | None, Decimal | None], ...]:
    """Each figure of the mart, by day and platform, that its server-hours and its Bedrock use do not sum to."""
    by = "usage_date, platform"
    apart = engine.query(
        f"""
        with mart as (select {by}, {SUMS} from {SERVED} where {chosen} group by all),
        part as (
            select cast(hour_started_at as date) as usage_date, platform, {_BASES} from {HOURS}
            where {chosen} and billed_cost_usd is not null
            union all
            select usage_date, 'bedrock', {_BASES} from {TOKENS} where {chosen} and bucket = 'serving'
        ),
        made as (select {by}, {SUMS} from part group by all)
        select usage_date, platform, {", ".join(f"mart.{b}, made.{b} as made_{b}" for b in BASES)}
        from mart full join made using ({by}) order by {by}
        """
    )
    return tuple(
        (f"{SERVED}.{basis} of {row['usage_date']}, {row['platform']}", row[basis], row[f"made_{basis}"])
        for row in apart.rows(named=True)
        for basis in BASES
        if row[basis] != row[f"made_{basis}"]
    )


def _stored(chosen: str, period: str) -> dict[str, str]:
    """The server-hours and the Bedrock use that the lines of a model must sum to, and the idle time that its servers
    share; `chosen` selects rows of the drill-downs, `period` a month and a currency."""
    servers = f"select server_id from {HOURS} where {chosen}"
    held = f"select distinct server_id, resource_id from {LEDGER} where {period} and server_id in ({servers})"
    return {
        "held": held,
        "unheld": f"select resource_id, effective_cost_usd from {LEDGER} where {period} and bucket = 'idle' "
        f"and server_id is null and resource_id in (select resource_id from ({held}) as held)",
        "server_hour": f"select * from {HOURS} where {chosen} and billed_cost_usd is not null",
        "token": f"select * from {TOKENS} where {chosen} and bucket = 'serving'",
    }


_OTHERS = ", ".join(
    f"hour.{basis} - case when own.server_id is null then 0 else own.{basis} end as {basis}"
    for basis in BASES
    if basis != "effective_cost_usd"
)
_VIEWS = {
    # Of idle time, what the hours of a server have and its own lines do not. Busy time is its own lines' alone.
    "shared_idle": f"""
        with hour as (
            select server_id, max(billing_currency) as billing_currency, sum(idle_cost_usd) as idle_cost_usd, {SUMS}
            from server_hour group by server_id
        ),
        own as (
            select server_id, {SUMS},
                sum(case when bucket = 'idle' then effective_cost_usd else 0 end) as idle_cost_usd
            from ledger_row where server_id is not null group by server_id
        ),
        machine as (
            select server_id, min(resource_id) as resource_id, count(distinct resource_id) as machine_count,
                sum(effective_cost_usd) as unheld_cost_usd, sum(abs(effective_cost_usd)) as most_cost_usd
            from held join unheld using (resource_id) group by server_id
        )
        select server_id, resource_id, machine_count, unheld_cost_usd, coalesce(most_cost_usd, 0) as most_cost_usd,
            billing_currency, hour.idle_cost_usd - coalesce(own.idle_cost_usd, 0) as effective_cost_usd, {_OTHERS}
        from hour left join own using (server_id) left join machine using (server_id)
        where machine_count > 0 or hour.idle_cost_usd <> coalesce(own.idle_cost_usd, 0)
    """,
    LINES: f"""
        select *, coalesce(server_id, usage_type) as served_by, bucket as part from line
        union all by name
        select server_id, server_id as served_by, resource_id, 'shared idle' as part, 'idle' as bucket,
            billing_currency, {_BASES},
            'share of ' || cast(cast(unheld_cost_usd as decimal(38, 2)) as varchar)
                || ' of idle time that nothing held'
                || case when machine_count > 1 then ', on ' || machine_count || ' machines' else '' end as share_rule
        from shared_idle
    """,
    LEDGER: f"""
        select server_id as served_by, bucket as part, {_BASES} from ledger_row where server_id is not null
        union all select usage_type, 'serving', {_BASES} from token
        union all select server_id, 'shared idle', {_BASES} from shared_idle
    """,
}
