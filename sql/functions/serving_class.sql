-- What a line bills, with what serves a model of Bedrock as `serving`; what trains one is no serving.
-- Hours of Provisioned Throughput are apart: which of them had no call is asked by the hour.
-- args: line_class, charge_category, billed_by, token_kind
case when line_class <> 'other' or charge_category not in ('Usage', 'Purchase') or coalesce(billed_by, 'training') = 'training'
    then line_class
    when token_kind = 'model_unit' then 'serving_hour'
    else 'serving' end
