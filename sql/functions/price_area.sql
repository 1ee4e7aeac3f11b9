-- The part of a region id that several regions share, such as us or ap; published block prices are for such areas.
-- args: region_id
regexp_replace(region_id, '-[a-z]+-[0-9]+.*$', '')
