-- GPU, Trainium or other: the families that commitments are reported by (design 7).
-- args: accelerator_family
case when accelerator_family in ('gpu', 'trainium') then accelerator_family else 'other' end
