-- The instance type whose hours the fee of a Capacity Block pays for: of an UltraServer that of its instances (facts
-- aws-billing 3.5).
-- args: instance_type
case when instance_type in ('u-p6e-gb200x36', 'u-p6e-gb200x72') then 'p6e-gb200.36xlarge' else instance_type end
