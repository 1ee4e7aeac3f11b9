-- Whether the fee of a training plan has paid for the hours of a FOCUS line: as cur_is_block_time has it of a report.
-- args: line
line.is_usage and (line.kind_class = 'block_time' or (line.service = 'AmazonSageMaker' and line.kind_class = 'instance'
    and line.billed_cost = 0 and line.effective_cost = 0 and coalesce(line.list_cost, 0) = 0
    and family_of(null, line.catalog_type) <> 'none'))
