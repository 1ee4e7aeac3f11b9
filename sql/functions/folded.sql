-- A run id or the value of its tag without its case and outer spaces: spellings of one run.
-- args: spelling
lower(trim(spelling))
