-- Whether a name is one of several that stand in a text, with a comma and a space between them.
-- args: name, names
strpos(', ' || names || ',', ', ' || name || ',') > 0
