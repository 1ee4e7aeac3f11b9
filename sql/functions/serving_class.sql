-- What a line bills, with what serves a model of Bedrock as `serving`; what trains one is no serving.
-- Hours of Provisioned Throughput are apart: calls are counted for each of them. The words are those of
-- ref_bedrock_word.
-- args: line_class, charge_category, bedrock_meter_id, usage_type
case when line_class <> 'other' or charge_category not in ('Usage', 'Purchase') or bedrock_meter_id is null
    or regexp_matches(coalesce(usage_type, ''), '-Customization-Training(-Units)?$') then line_class
    when regexp_matches(coalesce(usage_type, ''), '^[A-Z]+[0-9]*-(MP:[A-Z]+[0-9]*_)?(.+-ProvisionedThroughput-.*ModelUnits'
        || '|ProvisionedThroughput_.*ModelUnits(_Usage)?|ModelUnits-.+)(-Units)?$') then 'serving_hour'
    else 'serving' end
