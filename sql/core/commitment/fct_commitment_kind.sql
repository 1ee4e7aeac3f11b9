-- One row per payer × currency × commitment with a fee on the month's bill: its kind.
-- partition: billing_period
-- stored: no
select distinct payer_account_id, billing_currency, commitment_discount_id, commitment_kind
from stg_aws__commitment_fee
