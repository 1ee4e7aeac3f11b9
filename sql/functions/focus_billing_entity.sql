-- Who sells what a FOCUS line bills, as a cost and usage report says it: AWS, AWS Marketplace, or another provider by name.
-- over: aws_focus_line_item
case
    when not coalesce(provider_name like 'AWS%' or provider_name like 'Amazon%', true) then provider_name
    when not coalesce(publisher_name like 'AWS%' or publisher_name like 'Amazon%', true) then 'AWS Marketplace'
    else 'AWS'
end
