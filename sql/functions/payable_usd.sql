-- A cost as it is paid: rounded half up to the cent, or to the whole unit of a currency without cents.
-- args: cost, currency
-- unit: usd
-- ISO 4217: of the currencies AWS bills in, these two have no minor unit.
case when currency in ('JPY', 'KRW') then cast(round(cost, 0) as decimal(38, 10))
    else cast(round(cost, 2) as decimal(38, 10)) end
