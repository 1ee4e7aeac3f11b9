-- GPU, Trainium or everything else, as commitments are looked at (design 7).
-- args: accelerator_family
case when accelerator_family in ('gpu', 'trainium') then accelerator_family else 'other' end
