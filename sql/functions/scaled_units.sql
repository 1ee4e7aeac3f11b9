-- Units of `whole` as units of `part`, which is no more; all of them are all of it.
-- args: units, part, whole
cast(case when units >= whole then part when part >= whole then units
    else floor(cast(units as double) * part / whole) end as bigint)
