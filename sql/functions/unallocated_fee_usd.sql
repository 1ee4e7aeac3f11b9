-- Commitment fees of closed invoices whose use the bill does not show; up to a cent is rounding.
-- args: invoice_id, timing
-- unit: usd
case when sum(case when invoice_id <> '' then timing else 0 end) > 0.01
    then sum(case when invoice_id <> '' then timing else 0 end) else 0 end
