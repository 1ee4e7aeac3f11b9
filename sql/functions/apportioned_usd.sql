-- The part of a cost that falls on the units before `upto` of `whole`.
-- It is the cost itself at `whole`, so the differences along a row of cuts always sum to the cost.
-- args: cost, upto, whole
-- unit: usd
-- Rounded half away from zero by integer steps of 1e-10, which every engine does alike; rounded down, a share that ends
-- exactly on a step would lose one to the last bit of the double. A refund is cut as its fee is, and takes each piece
-- back.
cast(case
    when upto >= whole then cost
    else cast(cast(sign(cost) * floor(abs(cast(cost as double)) * cast(upto as double) / cast(whole as double)
        * 1e10 + 0.5) as bigint) as decimal(20, 0)) * cast(0.0000000001 as decimal(10, 10))
end as decimal(20, 10))
