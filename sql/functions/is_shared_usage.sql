-- Whether usage serves many runs by what it is: of a service on our list, a disk, or traffic.
-- args: shared_reason, usage_type
shared_reason is not null or regexp_matches(coalesce(usage_type, ''), 'EBS:|NatGateway|DataTransfer|AWS-(In|Out)-Bytes')
