-- What a line bills, with what serves a model of Bedrock as `serving`; what trains one is no serving.
-- args: line_class, charge_category, billed_by
case when line_class = 'other' and charge_category in ('Usage', 'Purchase') and billed_by <> 'training' then 'serving'
    else line_class end
