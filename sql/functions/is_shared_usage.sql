-- Whether usage serves many runs by what it is: of a service on our list, a disk, or traffic.
-- args: listed_service, usage_type
listed_service is not null or regexp_matches(coalesce(usage_type, ''), 'EBS:|NatGateway|DataTransfer|AWS-(In|Out)-Bytes')
