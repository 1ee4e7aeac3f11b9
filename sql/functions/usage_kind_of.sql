-- What a usage type bills, without region and instance: `USW2-BoxUsage:p5.48xlarge` -> `BoxUsage` (facts aws-billing
-- 4.1).
-- args: usage_type
replace(regexp_extract(usage_type, '(?:^|-)([A-Za-z]+:|(?:Box|Spot)Usage$)', 1), ':', '')
