-- The difference between an invoice and its lines that FOCUS 1.4 tolerates: 100 subunits of the currency, or half the
-- root of the number of lines in subunits where that is more.
-- args: line_count, currency
-- unit: usd
cast(case when currency in ('JPY', 'KRW') then 100 else 1 end * greatest(1, 0.005 * sqrt(line_count))
    as decimal(38, 10))
