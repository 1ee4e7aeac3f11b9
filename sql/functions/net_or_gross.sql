-- A cost after discounts where the payer's month carries net values, else before them; zero where AWS gives none.
-- args: has_net, net, gross
-- unit: usd
coalesce(case when has_net then net end, gross, 0)
