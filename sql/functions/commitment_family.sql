-- GPU, Trainium, Inferentia or other: the families that commitments are reported by (design 7).
-- args: accelerator_family
case when accelerator_family in ('gpu', 'trainium', 'inferentia') then accelerator_family else 'other' end
