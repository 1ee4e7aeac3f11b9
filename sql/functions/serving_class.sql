-- What a line bills, with what serves a model of Bedrock as `serving`; what trains one is no serving.
-- Hours of Provisioned Throughput are apart: calls are counted for each of them.
-- args: line_class, charge_category, billed_by, token_kind
case when line_class <> 'other' or charge_category not in ('Usage', 'Purchase') or coalesce(billed_by, 'training') = 'training'
    then line_class
    when token_kind = 'model_unit' then 'serving_hour'
    else 'serving' end
