-- How many steps of 1e-10 of a cost fall on the units before `upto` of `whole`.
-- args: cost, upto, whole
-- Rounded half away from zero by integer steps, which every engine does alike; rounded down, a share that ends
-- exactly on a step would lose one to the last bit of the double. A refund is cut as its fee is, and takes each piece
-- back.
cast(sign(cost) * floor(abs(cost) * cast(upto as double) / cast(whole as double) * 1e10 + 0.5) as bigint)
