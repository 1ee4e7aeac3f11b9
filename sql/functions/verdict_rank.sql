-- The order in which verdicts are listed, the strongest first.
-- args: verdict
list_position(['proven', 'disproven', 'supported', 'contradicted', 'inconclusive', 'indicative', 'not comparable'], verdict)
