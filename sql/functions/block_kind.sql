-- Kind of a reservation that is paid by a fee, by its id: training_plan or capacity_block.
-- args: block_id
case when block_id like '%training-plan%' then 'training_plan' else 'capacity_block' end
