-- One row per run that a pre-registration lists or pairs with another, or that an exclusion citing it leaves out.
select registration, run_id, pair_no, accelerator_family, coalesce(is_listed, false) as is_listed, reason as exclusion_reason, excluded_on
from proof_run
