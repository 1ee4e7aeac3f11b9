-- Whether some kind of commitment covers usage of this eligibility; ref_commitment_eligibility lists which, a test holds
-- the two together.
-- args: eligibility
eligibility in ('ec2_instance', 'fargate', 'lambda', 'sagemaker_instance', 'covered_service')
