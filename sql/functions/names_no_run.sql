-- Whether the value of a run tag, folded, is a word for a kind of use rather than the name of one run.
-- args: run_key
run_key in ('', '-', 'none', 'null', 'nil', 'n/a', 'na', 'unknown', 'default', 'true', 'false', 'yes', 'no', 'prod',
    'production', 'staging', 'stage', 'dev', 'development', 'test', 'testing', 'qa', 'sandbox', 'shared', 'common',
    'training', 'train', 'inference', 'serving', 'batch', 'research', 'experiment', 'gpu', 'trainium', 'ml')
