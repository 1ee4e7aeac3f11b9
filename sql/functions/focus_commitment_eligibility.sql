-- What a FOCUS line may be covered by: the programs that it names (CommitmentProgramEligibilityDetails), where its bill
-- names any, else what our list has for it (`listed`). Programs that no list knows leave it to ours.
-- args: programs, names_programs, listed
case
    -- What a commitment covers it can cover, whatever the bill names.
    when listed is null or names_programs is null or listed = 'covered_service' then listed
    when programs is null then 'no_program'
    when programs like '%SageMaker%' then 'sagemaker_instance'
    when programs like '%EC2%' or programs like '%Reserved%' then 'ec2_instance'
    when programs like '%Compute%' then 'fargate'
    else listed
end
