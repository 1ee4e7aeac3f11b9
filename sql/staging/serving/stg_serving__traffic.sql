-- One row per stretch within an hour that a server was up, or in which a managed model was called: what it served.
-- A server holds its machine for all of its uptime; stretches in which no request ran are idle.
select
    traffic.server_id, coalesce(server.model, listed.model, traffic.model) as model, server.precision,
    server.engine,
    coalesce(machine_id(server.resource_id, server.instance_type), traffic.resource_id) as resource_id,
    server.instance_type, coalesce(server.account_id, traffic.account_id) as account_id,
    coalesce(server.region_id, traffic.region_id) as region_id,
    family_of(accelerator.accelerator_family, replace(server.instance_type, 'ml.', '')) as accelerator_family,
    server.accelerators_used, server.team, traffic.caller,
    server.max_tokens_per_second, server.ttft_target_seconds, server.itl_target_seconds, server.evidence,
    traffic.started_at, least(traffic.ended_at, coalesce(server.ended_at, traffic.ended_at)) as ended_at,
    case when traffic.is_quiet then 'idle' else 'serving' end as bucket,
    traffic.request_count, traffic.error_count, traffic.input_tokens, traffic.cache_read_tokens,
    traffic.cache_write_tokens, traffic.output_tokens, traffic.running_count, traffic.waiting_count,
    traffic.ttft_p90_seconds, traffic.itl_p90_seconds
from serving_traffic as traffic
left join serving_server as server
    on server.server_id = traffic.server_id
    and traffic.started_at >= server.started_at and traffic.started_at < server.ended_at
left join ref_instance_type as accelerator on accelerator.instance_type = replace(server.instance_type, 'ml.', '')
left join ref_bedrock_model as listed
    on listed.billed_model = case when traffic.server_id is null then bedrock_model_id(traffic.model) end
